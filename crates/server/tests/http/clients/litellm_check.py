"""LiteLLM's library against a server, whose address is the argument. Prints a line for each check; the exit status is 1 if one
fails."""

import json
import os
import sys

# Prices of models come with the package; nothing is fetched.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402 (it reads the variable)

from checks import ASKED, WEATHER, check, run  # noqa: E402

litellm.suppress_debug_info = True

OPTIONS = {"api_base": f"{sys.argv[1]}/v1", "api_key": "none", "timeout": 120, "num_retries": 0}
MODEL = "openai/golden"
TOOL = {"type": "function", "function": WEATHER}


def chat(**options):
    return litellm.completion(**{"model": MODEL, "messages": ASKED, "temperature": 0, **OPTIONS, **options})


@check
def streams_are_whole_answers():
    whole = chat(max_tokens=16)
    assert whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 16
    chunks = list(chat(max_tokens=16, stream=True, stream_options={"include_usage": True}))
    parts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(parts) == whole.choices[0].message.content and len(parts) > 8
    usage = [chunk.usage for chunk in chunks if getattr(chunk, "usage", None)]
    assert usage[-1].completion_tokens == 16
    built = litellm.stream_chunk_builder(chunks, messages=ASKED)
    assert built.choices[0].message.content == whole.choices[0].message.content


@check
def calls_are_forced():
    options = {"max_tokens": 200, "tools": [TOOL], "tool_choice": "required"}
    whole = chat(**options)
    assert whole.choices[0].finish_reason == "tool_calls"
    call = whole.choices[0].message.tool_calls[0].function
    assert call.name == "get_weather" and json.loads(call.arguments)["city"] in ("Lima", "Cusco")
    chunks = list(chat(**options, stream=True))
    built = litellm.stream_chunk_builder(chunks, messages=ASKED).choices[0]
    streamed = built.message.tool_calls[0].function
    assert streamed.name == call.name and json.loads(streamed.arguments) == json.loads(call.arguments)
    assert built.finish_reason == "tool_calls"


@check
def schemas_hold():
    schema = {"type": "object", "properties": {"old": {"type": "boolean"}}, "required": ["old"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "fox", "schema": schema, "strict": True}}
    answer = chat(max_tokens=200, response_format=form)
    assert json.loads(answer.choices[0].message.content)["old"] in (True, False)


@check
def vllms_fields_pass():
    extra = {"min_tokens": 6, "logit_bias": None}
    whole = chat(max_tokens=12, stop=["e"], extra_body=extra)
    assert whole.usage.completion_tokens >= 6 and whole.choices[0].finish_reason in ("stop", "length")


@check
def texts_are_continued():
    answer = litellm.text_completion(
        model="text-completion-openai/golden", prompt="Once upon a time", max_tokens=8, temperature=0, **OPTIONS
    )
    assert answer.choices[0].text and answer.usage.completion_tokens == 8


@check
def texts_are_embedded():
    # The encoding that LiteLLM asks for by itself is none that servers know.
    found = litellm.embedding(model=MODEL, input=["A fox.", "A bear."], encoding_format="float", **OPTIONS)
    vectors = [row["embedding"] for row in found.data]
    assert len(vectors) == 2 and vectors[0] != vectors[1] and len(vectors[0]) == len(vectors[1]) > 50
    assert found.usage.prompt_tokens > 4


@check
def errors_have_their_classes():
    for error, options in [
        (litellm.BadRequestError, {"temperature": 99e9}),
        (litellm.NotFoundError, {"model": "openai/nobody"}),
        (litellm.ContextWindowExceededError, {"messages": [{"role": "user", "content": "fox " * 4000}]}),
    ]:
        try:
            chat(**options)
        except error:
            continue
        raise AssertionError(options)


run()
