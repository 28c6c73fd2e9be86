//! Roles as types, so that a handler's signature says what it takes to call it.

pub use tenant_management::{OperatorRole, Role};

/// The least role that a [`TenantAccess`](crate::TenantAccess) asks for.
pub trait RequiredRole: Send + Sync + 'static {
    /// The role.
    const ROLE: Role;
}

/// May read.
#[derive(Clone, Copy, Debug)]
pub enum Viewer {}

/// May read and write.
#[derive(Clone, Copy, Debug)]
pub enum Member {}

/// May also manage the tenant's keys and users.
#[derive(Clone, Copy, Debug)]
pub enum Admin {}

impl RequiredRole for Viewer {
    const ROLE: Role = Role::Viewer;
}

impl RequiredRole for Member {
    const ROLE: Role = Role::Member;
}

impl RequiredRole for Admin {
    const ROLE: Role = Role::Admin;
}

/// The least role that an [`OperatorAccess`](crate::OperatorAccess) asks for.
pub trait RequiredOperatorRole: Send + Sync + 'static {
    /// The role.
    const ROLE: OperatorRole;
}

/// May look.
#[derive(Clone, Copy, Debug)]
pub enum Read {}

/// May change, too.
#[derive(Clone, Copy, Debug)]
pub enum Write {}

impl RequiredOperatorRole for Read {
    const ROLE: OperatorRole = OperatorRole::Read;
}

impl RequiredOperatorRole for Write {
    const ROLE: OperatorRole = OperatorRole::Write;
}
