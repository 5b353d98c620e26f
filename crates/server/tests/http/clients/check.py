"""The SDKs of OpenAI, Anthropic and ollama against a server, whose address is the argument. Prints a line for each check;
the exit status is 1 if one fails."""

import json
import sys
from typing import Literal

import anthropic
import ollama
import openai
from pydantic import BaseModel

from checks import ASKED, WEATHER, check, run

BASE = sys.argv[1]
MODEL = "golden"
open_ai = openai.OpenAI(base_url=f"{BASE}/v1", api_key="none", max_retries=0, timeout=120)
claude = anthropic.Anthropic(base_url=BASE, api_key="none", max_retries=0, timeout=120)
llama = ollama.Client(host=BASE)


def chat(**options):
    return open_ai.chat.completions.create(model=MODEL, messages=ASKED, temperature=0, **options)


@check
def openai_streams_are_whole_answers():
    whole = chat(max_tokens=16)
    parts, roles, usage = "", 0, None
    for chunk in chat(max_completion_tokens=16, stream=True, stream_options={"include_usage": True}):
        if chunk.choices:
            delta = chunk.choices[0].delta
            roles += delta.role == "assistant"
            parts += delta.content or ""
        else:
            usage = chunk.usage
    assert parts == whole.choices[0].message.content and roles == 1
    assert usage.completion_tokens == whole.usage.completion_tokens == 16


@check
def openai_helper_of_streams():
    with open_ai.chat.completions.stream(model=MODEL, messages=ASKED, temperature=0, stop=["e"]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"content.delta", "content.done"} <= kinds and final.choices[0].finish_reason == "stop"


@check
def openai_parses_models():
    class Fox(BaseModel):
        color: Literal["red", "gray"]
        old: bool

    parsed = open_ai.chat.completions.parse(
        model=MODEL, messages=ASKED, temperature=0, max_tokens=400, response_format=Fox
    )
    assert isinstance(parsed.choices[0].message.parsed, Fox)


@check
def openai_log_probabilities_of_several_answers():
    answer = chat(max_tokens=3, logprobs=True, top_logprobs=2, n=2)
    for choice in answer.choices:
        tokens = choice.logprobs.content
        assert "".join(token.token for token in tokens) == choice.message.content
        assert all(len(token.top_logprobs) == 2 for token in tokens)


@check
def openai_forced_calls():
    tools = [{"type": "function", "function": WEATHER}]
    whole = chat(max_tokens=200, tools=tools, tool_choice="required")
    assert whole.choices[0].finish_reason == "tool_calls"
    call = whole.choices[0].message.tool_calls[0].function
    assert call.name == "get_weather" and json.loads(call.arguments)["city"] in ("Lima", "Cusco")
    name, arguments = "", ""
    for chunk in chat(max_tokens=200, tools=tools, tool_choice="required", stream=True):
        for part in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
            if part.index == 0:
                name += part.function.name or ""
                arguments += part.function.arguments or ""
    assert name == "get_weather" and json.loads(arguments) == json.loads(call.arguments)


@check
def openai_responses_that_are_kept():
    def after(previous, text):
        return open_ai.responses.create(
            model=MODEL, input=text, previous_response_id=previous, max_output_tokens=8, temperature=0
        )

    first = after(None, "A story.")
    second = after(first.id, "And then?")
    assert second.previous_response_id == first.id and second.usage.input_tokens > first.usage.input_tokens
    assert open_ai.responses.retrieve(second.id).output_text == second.output_text
    open_ai.responses.delete(first.id)
    try:
        after(first.id, "And then?")
        raise AssertionError("it was deleted")
    except openai.BadRequestError as error:
        assert error.param == "previous_response_id"


@check
def openai_responses():
    whole = open_ai.responses.create(model=MODEL, input="A story.", max_output_tokens=8, temperature=0)
    assert whole.status == "incomplete" and whole.output_text
    events = list(
        open_ai.responses.create(model=MODEL, input="A story.", max_output_tokens=8, temperature=0, stream=True)
    )
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text and events[-1].type == "response.incomplete"


@check
def openai_errors():
    for error, options in [
        (openai.BadRequestError, {"messages": []}),
        (openai.BadRequestError, {"messages": ASKED, "temperature": 99e9}),
        (openai.NotFoundError, {"messages": ASKED, "model": "nobody"}),
    ]:
        try:
            open_ai.chat.completions.create(**{"model": MODEL, **options})
        except error as raised:
            assert raised.body["message"]
        else:
            raise AssertionError(options)
    try:
        open_ai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "fox " * 4000}])
    except openai.BadRequestError as raised:
        assert raised.code == "context_length_exceeded"
    assert open_ai.models.retrieve(MODEL).id == open_ai.models.list().data[0].id == MODEL


@check
def anthropic_messages():
    options = {"model": MODEL, "messages": ASKED, "max_tokens": 16}
    whole = claude.messages.create(**options, extra_body={"temperature": 0})
    assert whole.stop_reason == "max_tokens" and whole.id.startswith("msg_")
    with claude.messages.stream(**options, extra_body={"temperature": 0}) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    counted = claude.messages.count_tokens(model=MODEL, messages=ASKED).input_tokens
    assert counted == final.usage.input_tokens + final.usage.cache_read_input_tokens


@check
def anthropic_stop_sequences_and_tools():
    stopped = claude.messages.create(
        model=MODEL, messages=ASKED, max_tokens=100, stop_sequences=["e"], extra_body={"temperature": 0}
    )
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "e")
    tool = {"name": WEATHER["name"], "input_schema": WEATHER["parameters"]}
    called = claude.messages.create(
        model=MODEL, messages=ASKED, max_tokens=200, tools=[tool], tool_choice={"type": "any"}
    )
    assert called.stop_reason == "tool_use" and called.content[-1].input["city"] in ("Lima", "Cusco")
    try:
        claude.messages.create(model="nobody", messages=ASKED, max_tokens=1)
    except anthropic.NotFoundError as raised:
        assert raised.body["error"]["type"] == "not_found_error"


@check
def ollama_chats():
    options = {"temperature": 0, "num_predict": 12}
    whole = llama.chat(model=MODEL, messages=ASKED, options=options)
    parts = list(llama.chat(model=MODEL, messages=ASKED, options=options, stream=True))
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert parts[-1].done and parts[-1].done_reason == "length" and parts[-1].eval_count == 12
    assert llama.generate(model=MODEL, prompt="Once", raw=True, options=options).response
    assert llama.list().models[0].model.startswith(MODEL) and llama.show(MODEL).modelinfo


@check
def ollama_pulls_copies_and_deletes():
    statuses = [line.status for line in llama.pull("hf:org/fox:Q8_0", stream=True)]
    assert statuses[0] == "pulling manifest" and statuses[-1] == "success", statuses
    progress = next(line for line in llama.pull("hf:org/hare", stream=True) if line.digest)
    assert progress.total == 100 and progress.completed in (50, 100)
    assert llama.pull("hf:org/owl").status == "success"
    assert llama.copy("hf:org/fox:Q8_0", "fox").status == "success"
    assert llama.generate(model="fox", prompt="Once", raw=True, options={"num_predict": 2}).response
    assert {"hf:org/fox:Q8_0", "hf:org/hare"} <= {model.model for model in llama.list().models}
    for name in ("hf:org/fox:Q8_0", "fox"):
        assert llama.delete(name).status == "success"
    for wrong in (lambda: llama.delete("fox"), lambda: llama.pull("missing"), lambda: llama.copy("fox", "x")):
        try:
            wrong()
        except ollama.ResponseError as raised:
            assert raised.status_code == 404 and raised.error
        else:
            raise AssertionError("nothing was refused")


run()
