# The sqlock command, installed from its Debian package:
#
#     git archive HEAD | docker build -f docker/Dockerfile.command -t sqlock -
#     docker run --rm -e SQLOCK_URL sqlock ls
#     docker run --rm -e SQLOCK_URL sqlock run migrate -- true
#
# An image that has a command of its own to be run under a lock begins FROM it.
ARG BASE=debian:bookworm-20250630-slim
FROM ${BASE} AS build
RUN apt-get -q update && apt-get -q install -y --no-install-recommends make
WORKDIR /sqlock
COPY . .
RUN make setup SETUP_LEVELS='build deb'
RUN DEB_BUILD_OPTIONS=nocheck DEB_BUILD_PROFILES=nocheck make SETUP=no deb

FROM ${BASE}
COPY --from=build /sqlock/build/deb/sqlock_*.deb /tmp/
RUN apt-get -q update && apt-get -q install -y --no-install-recommends \
        /tmp/sqlock_*.deb && rm -rf /tmp/sqlock_*.deb /var/lib/apt/lists/*
USER nobody
ENTRYPOINT ["sqlock"]
