# The image of gpu-batch: one static program. No shell, no libraries, no distribution, so there is
# nothing to patch but the program itself.
#
#   docker build -t REGISTRY/gpu-batch:VERSION .
#
# `--build-arg GPU_BATCH_COMMIT=$(git rev-parse HEAD)` is what `--version` tells then; with
# SOURCE_DATE_EPOCH it tells the time, too. For several architectures at once: docker buildx build --platform linux/amd64,linux/arm64 ...

FROM rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
# What git knows is not copied.
ARG GPU_BATCH_COMMIT
ARG SOURCE_DATE_EPOCH
# Linked with glibc as it stands, so that nothing has to be installed first. With --target, the flag
# does not reach the programs that run during the build. What is not static fails here.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
    && RUSTFLAGS="-C target-feature=+crt-static" \
       cargo build --profile dist --locked --bin gpu-batch --target "$target" \
    && mv "target/$target/dist/gpu-batch" /gpu-batch \
    && strip /gpu-batch \
    && ldd /gpu-batch 2>&1 | grep -E 'statically linked|not a dynamic executable'
# Completions and manual pages, where packages have them: for `docker cp`.
RUN mkdir -p /share/bash-completion/completions /share/zsh/site-functions \
       /share/fish/vendor_completions.d \
    && /gpu-batch completions bash > /share/bash-completion/completions/gpu-batch \
    && /gpu-batch completions zsh > /share/zsh/site-functions/_gpu-batch \
    && /gpu-batch completions fish > /share/fish/vendor_completions.d/gpu-batch.fish \
    && /gpu-batch man --out /share/man/man1

FROM scratch
LABEL org.opencontainers.image.title="gpu-batch" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/gpu-batch/gpu-batch"
COPY --from=build /source/LICENSE /LICENSE
# For API servers whose kubeconfig names no authority of their own.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /share /usr/share
COPY --from=build /gpu-batch /gpu-batch
# A number, so that `runAsNonRoot` can be checked without a table of users.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/gpu-batch"]
CMD ["run"]
