# Live polls: docker build -t predilect . && docker run -p 127.0.0.1:8000:8000 -v polls:/polls predilect
# The folder /polls holds a file a poll. docs/howto/live-polls.md says how to put it behind TLS.
FROM python:3.13-slim
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE /source/
COPY src /source/src
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[live]" && rm -rf /source \
    && useradd --create-home --uid 1000 polls && install -d -o polls -g polls /polls
USER polls
WORKDIR /polls
VOLUME /polls
ENV OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_CACHE_DIR=/home/polls/numba
ENV PREDILECT_POLL=/polls PREDILECT_SERVE_HOST=0.0.0.0 PREDILECT_SERVE_PORT=8000
EXPOSE 8000
HEALTHCHECK CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$PREDILECT_SERVE_PORT/health', timeout=5)"
ENTRYPOINT ["predilect", "poll"]
CMD ["serve"]
