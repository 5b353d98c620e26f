"""Two servers behind a router: conversations stay where their prefix is cached, and the end of a server loses no request.

    python check.py CHASKI

Of each router (sglang-router, vllm-router, haproxy, LiteLLM's proxy) it prints a line of JSON, also of those that are not installed; the exit code is 1 if
one of them lost something, or if haproxy is missing in a full run (CHASKI_TEST_FULL=1). Everything listens on the loopback interface.
"""

import asyncio
import collections
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import httpx

CHASKI = sys.argv[1]
BIN = os.path.dirname(sys.executable)
# LiteLLM wants a key; the servers and the other routers ask for none.
KEY = "sk-" + secrets.token_hex(16)
HEADERS = {"authorization": f"Bearer {KEY}"}
N_CONVERSATION, N_TURN, N_REQUEST, AT_ONCE = 12, 4, 48, 6
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../../docs/serving.md")


def haproxy(port, a, b):
    """The recipe of docs/serving.md with these ports."""
    with open(DOCS, encoding="utf-8") as docs:
        recipe = docs.read().split("```haproxy\n")[1].split("```")[0]
    for found, here in [("127.0.0.1:8000", port), ("10.0.0.1:8080", a), ("10.0.0.2:8080", b)]:
        assert recipe.count(found) == 1, found
        recipe = recipe.replace(found, f"127.0.0.1:{here}")
    return recipe


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server with the built-in model."""

    def __init__(self):
        self.port = free_port()
        self.start()

    def start(self):
        line = [CHASKI, "serve", "--device", "cpu", "-t", "1", "--port", str(self.port), "--alias", "model", "--parallel", "8"]
        line += ["-c", "2048", "--kv-tokens", "24576", "--chat-template", "chatml", "--drain-delay", "5", "--log-format", "none"]
        self.process = subprocess.Popen(line, stderr=subprocess.DEVNULL)
        wait(lambda: ok(self.url() + "/health"), "a server")

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(60)


def ok(url):
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def wait(is_so, what, limit=60):
    end = time.time() + limit
    while not is_so():
        if time.time() > end:
            raise SystemExit(f"{what}: not within {limit} s")
        time.sleep(0.1)


def router(name, a, b, folder):
    """The command of a router, and its address."""
    if name == "litellm":
        return litellm(a, b, folder)
    port, other = free_port(), free_port()
    common = ["--host", "127.0.0.1", "--port", str(port), "--worker-urls", a.url(), b.url(), "--policy", "cache_aware"]
    common += ["--balance-abs-threshold", "6", "--balance-rel-threshold", "1.5", "--health-check-interval-secs", "1"]
    common += ["--health-check-timeout-secs", "5", "--health-failure-threshold", "3", "--health-success-threshold", "1"]
    common += ["--cb-timeout-duration-secs", "3", "--worker-startup-check-interval", "1"]
    common += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(other)]
    if name == "haproxy":
        config = os.path.join(folder, "haproxy.cfg")
        with open(config, "w") as file:
            file.write(haproxy(port, a.port, b.port))
        line = [shutil.which("haproxy"), "-f", config]
    elif name == "sglang-router":
        line = [sys.executable, "-m", "sglang_router.launch_router", *common]
    else:
        line = [os.path.join(BIN, "vllm-router"), *common]
    return line, f"http://127.0.0.1:{port}"


def litellm(a, b, folder):
    """The same of LiteLLM's proxy."""
    port, config = free_port(), os.path.join(folder, "litellm.json")
    options = [{"model": "openai/model", "api_base": server.url() + "/v1", "api_key": "none"} for server in (a, b)]
    # A server that is gone has the fewest requests: it rests at its first failure.
    settings = {"routing_strategy": "least-busy", "num_retries": 5, "retry_after": 1, "allowed_fails": 0, "cooldown_time": 5}
    with open(config, "w") as file:
        models = [{"model_name": "model", "litellm_params": params} for params in options]
        # JSON is YAML.
        json.dump({"model_list": models, "router_settings": settings}, file)
    line = [os.path.join(BIN, "litellm"), "--config", config, "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    return line, f"http://127.0.0.1:{port}"


async def conversation(client, url, i, gate, turns):
    system = f"Group {i % 3}. " + "You tell stories to children, and they are kind. " * 12
    messages = [{"role": "system", "content": system}]
    before = None
    for turn in range(N_TURN):
        messages.append({"role": "user", "content": f"Child {i} asks for story {turn} about a cat and a dog."})
        body = {"model": "model", "messages": messages, "max_tokens": 8, "seed": i}
        async with gate:
            answer = await client.post(url + "/v1/chat/completions", json=body, headers={"x-session-id": str(i)})
        answer.raise_for_status()
        answer = answer.json()
        usage = answer["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        # A page may be begun, and the template closes the answer.
        turns.append((cached, usage["prompt_tokens"], before is None or cached >= before - 64))
        before = usage["prompt_tokens"]
        messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})


async def affinity(url):
    turns, gate = [], asyncio.Semaphore(4)
    async with httpx.AsyncClient(timeout=120, headers=HEADERS) as client:
        await asyncio.gather(*[conversation(client, url, i, gate, turns) for i in range(N_CONVERSATION)])
    cached, total = sum(turn[0] for turn in turns), sum(turn[1] for turn in turns)
    return {"turns": len(turns), "moved": sum(not turn[2] for turn in turns), "cached_share": round(cached / total, 3)}


async def request(client, url, i, gate, results):
    body = {"model": "model", "messages": [{"role": "user", "content": f"Story {i}"}], "max_tokens": 150, "stream": i % 2 == 0}
    body["ignore_eos"] = True
    kind = "stream" if body["stream"] else "whole"
    async with gate:
        try:
            if body["stream"]:
                result = "cut"
                async with client.stream("POST", url + "/v1/chat/completions", json=body) as answer:
                    if answer.status_code != 200:
                        result = str(answer.status_code)
                    async for line in answer.aiter_lines():
                        result = "complete" if line == "data: [DONE]" else result
            else:
                answer = await client.post(url + "/v1/chat/completions", json=body)
                result = "complete" if answer.status_code == 200 else str(answer.status_code)
        except httpx.HTTPError as error:
            result = "cut" if kind == "stream" else type(error).__name__
    results.append(f"{kind} {result}")


async def through_the_end(url, servers, how):
    """Requests while the busier of two servers ends."""
    results, gate, codes, ended = [], asyncio.Semaphore(AT_ONCE), [], []
    async with httpx.AsyncClient(timeout=120, headers=HEADERS) as client:

        async def end():
            await asyncio.sleep(1)
            loads = [(await client.get(server.url() + "/load")).json()["server_load"] for server in servers]
            server = servers[loads.index(max(loads))]
            codes.append(await asyncio.to_thread(server.end, how))
            ended.append(server)

        asked = [request(client, url, i, gate, results) for i in range(N_REQUEST)]
        await asyncio.gather(end(), *asked)
    return dict(collections.Counter(results)), codes[0], ended[0]


def check(name, folder):
    a, b = Server(), Server()
    line, url = router(name, a, b, folder)
    # LiteLLM has the prices of models in its package.
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY}
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        body = {"model": "model", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}

        def answers():
            try:
                return httpx.post(url + "/v1/chat/completions", json=body, timeout=20, headers=HEADERS).status_code == 200
            except httpx.HTTPError:
                return False

        wait(answers, name, 180)
        time.sleep(3)
        found = {"router": name, "affinity": asyncio.run(affinity(url))}
        found["killed"], _, killed = asyncio.run(through_the_end(url, [a, b], signal.SIGKILL))
        killed.start()
        time.sleep(6)
        found["drained"], found["exit"], _ = asyncio.run(through_the_end(url, [a, b], signal.SIGTERM))
    finally:
        for running in (process, a.process, b.process):
            running.kill()
            running.wait()
    is_whole = found["killed"].get("whole complete", 0) == N_REQUEST // 2
    is_drained = sum(n for what, n in found["drained"].items() if what.endswith("complete")) == N_REQUEST
    # LiteLLM knows no prefixes.
    stays = name == "litellm" or found["affinity"]["moved"] <= found["affinity"]["turns"] // 8
    found["ok"] = is_whole and is_drained and stays and found["exit"] == 0
    print(json.dumps(found), flush=True)
    return found["ok"]


def is_there(name):
    return os.path.exists(os.path.join(BIN, name)) or (name == "haproxy" and shutil.which(name))


asked = sys.argv[2:] or ["sglang-router", "vllm-router", "haproxy", "litellm"]
names = [name for name in asked if is_there(name)]
missing = [name for name in asked if name not in names]
for name in missing:
    print(json.dumps({"router": name, "left_out": "it is not installed"}), flush=True)
# pip installs the others, and LiteLLM's proxy has an environment of its own.
if "haproxy" in missing and os.environ.get("CHASKI_TEST_FULL", "0") != "0":
    sys.exit("a full run needs haproxy: install the package of the system")
with tempfile.TemporaryDirectory() as folder:
    results = [check(name, folder) for name in names]
sys.exit(0 if results and all(results) else 1)
