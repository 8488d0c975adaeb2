# The viewer in an image: `make wheels PLATFORMS=linux-x86_64` (or linux-aarch64), `docker build --tag kinetoscope .`, then
# `docker run --rm --publish 127.0.0.1:6007:6007 --volume "$PWD/runs:/runs:ro" kinetoscope`

FROM python:3.13-slim

COPY dist/*.whl /wheels/
RUN python -m pip install --no-cache-dir --find-links /wheels kinetoscope && rm -r /wheels

# Not root: the viewer reads files of others.
RUN useradd --create-home viewer
USER viewer

VOLUME /runs
EXPOSE 6007
# Within the container any address is the container's own; --publish above decides who reaches it, and the token who sees it.
ENTRYPOINT ["kinetoscope", "open", "--no-browser", "--stay", "--host", "0.0.0.0", "--port", "6007"]
CMD ["/runs"]
