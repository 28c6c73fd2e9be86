#!/usr/bin/env bash
# Whether the proxy runs and has an instance to send requests to. Its image has bash, and no program for HTTP.
set -euo pipefail
exec 3<>/dev/tcp/127.0.0.1/8404
printf 'GET /health HTTP/1.0\r\n\r\n' >&3
read -r -t 3 _ status _ <&3
[ "$status" = 200 ]
