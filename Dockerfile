FROM golang:1.26-bookworm AS build
WORKDIR /src
# Download the modules first: Docker caches this layer until go.mod or go.sum changes.
COPY go.mod go.sum ./
# GOPROXY is the source of the modules. Empty means Go's default.
ARG GOPROXY
RUN go mod download
COPY . .
ARG COMMIT
# Remove the compiler's cache: it would make the layer ten times as large.
RUN CGO_ENABLED=0 GOCACHE=/tmp/cache go build -trimpath -ldflags "-s -w -X main.commit=${COMMIT}" -o /redlock-proxy . \
    && rm -rf /tmp/cache && mkdir /state

# This base image has no shell and no package manager. It has the CA certificates that rediss://
# masters need.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /redlock-proxy /redlock-proxy
COPY LICENSE NOTICE /licenses/
# The folder for the file of init --once. A new volume at this path gets its owner from the image.
COPY --from=build --chown=65532:65532 /state /var/lib/redlock-proxy

# The user is a number, because Kubernetes' runAsNonRoot does not accept a name.
USER 65532:65532

# The default address, 127.0.0.1, cannot be reached from outside the container. To change the
# address, set this variable and not --listen: the health check reads it, too. Clients connect from
# outside the container, so protected mode refuses them unless a login is required, or
# REDLOCK_PROTECTED_MODE=false says that only your clients can reach the port.
ENV REDLOCK_LISTEN=0.0.0.0:6380
EXPOSE 6380

HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/redlock-proxy", "healthcheck"]
ENTRYPOINT ["/redlock-proxy"]
CMD ["serve"]
