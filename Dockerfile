FROM golang:1.26-bookworm AS build
WORKDIR /src
# The modules come first: they stay cached as long as go.mod and go.sum are the same.
COPY go.mod go.sum ./
# The source of the modules; empty is Go's own default.
ARG GOPROXY
RUN go mod download
COPY . .
ARG COMMIT
# The compiler's cache would only make the layer ten times as large.
RUN CGO_ENABLED=0 GOCACHE=/tmp/cache go build -trimpath -ldflags "-s -w -X main.commit=${COMMIT}" -o /redlock-proxy . \
    && rm -rf /tmp/cache && mkdir /state

# No shell and no package manager, but the CA certificates that rediss:// masters need.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /redlock-proxy /redlock-proxy
COPY LICENSE NOTICE /licenses/
# Where init --once keeps its file: a volume there takes its owner from here.
COPY --from=build --chown=65532:65532 /state /var/lib/redlock-proxy

# By number, because Kubernetes' runAsNonRoot does not accept a name.
USER 65532:65532

# The default, 127.0.0.1, cannot be reached from outside the container. Change the address
# here rather than by --listen: the health check reads it too. Clients come from outside, so protected mode turns them away
# unless they have to log in, or REDLOCK_PROTECTED_MODE=false says that only your clients can reach the port.
ENV REDLOCK_LISTEN=0.0.0.0:6380
EXPOSE 6380

HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/redlock-proxy", "healthcheck"]
ENTRYPOINT ["/redlock-proxy"]
CMD ["serve"]
