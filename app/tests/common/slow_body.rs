//! A request body whose parts are sent when the test wants.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc;

struct SlowBody(mpsc::UnboundedReceiver<&'static [u8]>);

impl Body for SlowBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|part| part.map(|part| Ok(Frame::data(Bytes::from_static(part)))))
    }
}

/// A body, and where its parts are put. It ends when that is dropped.
pub fn slow_body() -> (mpsc::UnboundedSender<&'static [u8]>, reqwest::Body) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, reqwest::Body::wrap(SlowBody(receiver)))
}
