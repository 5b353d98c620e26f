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


def refusal(error, function, **options):
    """The error of this class with which the server refuses a call."""
    try:
        function(**options)
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__}: {str(options)[:100]}")


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
    long = [{"role": "user", "content": "fox " * 4000}]
    too_long = refusal(openai.BadRequestError, open_ai.chat.completions.create, model=MODEL, messages=long)
    assert too_long.code == "context_length_exceeded" and too_long.status_code == 400
    assert open_ai.models.retrieve(MODEL).id == open_ai.models.list().data[0].id == MODEL


@check
def openai_errors_name_the_field():
    create = open_ai.chat.completions.create
    for options, param in [
        ({"temperature": 99e9}, "temperature"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"extra_body": {"metadata": "a"}}, "metadata"),
        ({"extra_body": {"store": "yes"}}, "store"),
    ]:
        wrong = refusal(openai.BadRequestError, create, **{"model": MODEL, "messages": ASKED, **options})
        assert (wrong.param, wrong.type) == (param, "invalid_request_error"), (wrong.param, wrong.body)
    unknown = refusal(openai.NotFoundError, create, model="nobody", messages=ASKED)
    assert unknown.code == "model_not_found" and unknown.request_id


@check
def openai_lists_models():
    listed = {model.id: model for model in open_ai.models.list()}
    assert listed[MODEL].object == "model" and listed[MODEL].owned_by == "chaski"
    assert open_ai.models.retrieve(MODEL).created == listed[MODEL].created
    assert refusal(openai.NotFoundError, open_ai.models.retrieve, model="nobody").code == "model_not_found"


@check
def openai_seeds():
    def told(seed):
        answer = open_ai.chat.completions.create(
            model=MODEL, messages=ASKED, temperature=1, seed=seed, max_tokens=24
        )
        return answer.choices[0].message.content

    first = told(5)
    assert first and told(5) == first
    assert any(told(seed) != first for seed in (6, 7, 8))


@check
def openai_cached_tokens():
    messages = [{"role": "user", "content": "A heron and a beaver build a house by the river, and it rains all day."}]

    def usage():
        answer = open_ai.chat.completions.create(model=MODEL, messages=messages, temperature=0, max_tokens=2)
        return answer.usage

    first, second = usage(), usage()
    assert 0 < second.prompt_tokens_details.cached_tokens < second.prompt_tokens == first.prompt_tokens
    assert second.prompt_tokens_details.cached_tokens >= first.prompt_tokens_details.cached_tokens
    assert second.total_tokens == second.prompt_tokens + second.completion_tokens


@check
def openai_stop_texts():
    whole = chat(max_tokens=40).choices[0].message.content
    for stop in ("e", ["zzzz", "e"]):
        stopped = chat(max_tokens=40, stop=stop).choices[0]
        assert stopped.finish_reason == "stop" and stopped.message.content == whole.split("e")[0]
    unstopped = chat(max_tokens=4, stop=["zzzz"]).choices[0]
    assert unstopped.finish_reason == "length" and whole.startswith(unstopped.message.content)


@check
def openai_two_answers():
    options = {"n": 2, "max_tokens": 8, "extra_body": {"ignore_eos": True}}
    whole = chat(**options)
    texts = [choice.message.content for choice in whole.choices]
    assert [choice.index for choice in whole.choices] == [0, 1]
    assert whole.usage.completion_tokens == 16
    assert whole.usage.prompt_tokens == chat(max_tokens=1).usage.prompt_tokens
    parts = ["", ""]
    for chunk in chat(stream=True, **options):
        for choice in chunk.choices:
            parts[choice.index] += choice.delta.content or ""
    assert parts == texts


@check
def openai_log_probabilities_in_streams():
    text, tokens = "", []
    for chunk in chat(max_tokens=6, logprobs=True, top_logprobs=3, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            tokens += (choice.logprobs.content or []) if choice.logprobs else []
    assert len(tokens) == 6 and "".join(token.token for token in tokens) == text
    for token in tokens:
        # At temperature 0 the likeliest is taken.
        assert token.logprob <= 0 and token.top_logprobs[0].token == token.token and len(token.top_logprobs) == 3


@check
def openai_streamed_calls_have_an_id_and_an_end():
    tools = [{"type": "function", "function": WEATHER}]
    ids, names, arguments, finish = {}, {}, {}, []
    for chunk in chat(max_tokens=200, tools=tools, tool_choice="required", stream=True):
        for choice in chunk.choices:
            finish += [choice.finish_reason] if choice.finish_reason else []
            for part in choice.delta.tool_calls or []:
                ids.setdefault(part.index, []).extend([part.id] if part.id else [])
                names.setdefault(part.index, []).extend([part.function.name] if part.function.name else [])
                arguments[part.index] = arguments.get(part.index, "") + (part.function.arguments or "")
    assert finish == ["tool_calls"] and list(ids) == list(range(len(ids))) and ids
    assert all(len(found) == 1 and found[0].startswith("call_") for found in ids.values()), ids
    assert all(found == ["get_weather"] for found in names.values()), names
    assert all(json.loads(text)["city"] in ("Lima", "Cusco") for text in arguments.values()), arguments


@check
def openai_completions():
    def complete(**options):
        return open_ai.completions.create(model=MODEL, prompt="Once upon a time", temperature=0, max_tokens=8, **options)

    plain = complete()
    choice = plain.choices[0]
    assert plain.object == "text_completion" and choice.text and choice.finish_reason == "length"
    assert plain.usage.completion_tokens == 8
    assert complete(echo=True).choices[0].text == "Once upon a time" + choice.text
    chunks = [chunk for chunk in complete(stream=True) if chunk.choices]
    assert "".join(chunk.choices[0].text for chunk in chunks) == choice.text
    assert chunks[-1].choices[0].finish_reason == "length" and len({chunk.id for chunk in chunks}) == 1
    assert "".join(complete(logprobs=1).choices[0].logprobs.tokens) == choice.text


@check
def openai_embeddings():
    texts = ["A fox runs.", "A dog and a cat sleep."]
    # The SDK asks for base64 by itself, and decodes it.
    found = open_ai.embeddings.create(model=MODEL, input=texts)
    floats = open_ai.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    assert [one.index for one in found.data] == [0, 1] and found.usage.prompt_tokens > 4
    for one, other in zip(found.data, floats.data, strict=True):
        assert max(abs(a - b) for a, b in zip(one.embedding, other.embedding, strict=True)) < 1e-6
        assert abs(sum(value * value for value in one.embedding) - 1) < 1e-3
    short = open_ai.embeddings.create(model=MODEL, input=texts[0], dimensions=16)
    assert len(short.data[0].embedding) == 16
    refusal(openai.BadRequestError, open_ai.embeddings.create, model=MODEL, input="")


@check
def openai_responses_tell_times():
    extra = {"timings_per_token": True, "return_progress": True}
    events = open_ai.responses.create(
        model=MODEL, input="A story about a newt.", max_output_tokens=4, temperature=0, stream=True, extra_body=extra
    )
    events = [event.to_dict() for event in events]
    deltas = [event for event in events if event["type"].endswith("output_text.delta")]
    assert deltas and all("predicted_per_second" in event["timings"] for event in deltas)
    progress = [event["prompt_progress"] for event in events if "prompt_progress" in event]
    assert progress and progress[-1]["processed"] == progress[-1]["total"], progress


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
def anthropic_streams_have_their_events_in_order():
    options = {"max_tokens": 6, "stream": True, "extra_body": {"temperature": 0}}
    events = list(claude.messages.create(model=MODEL, messages=ASKED, **options))
    names = [event.type for event in events if event.type != "ping"]
    folded = [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    assert folded == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    start, delta = events[0].message, events[-2]
    assert start.id.startswith("msg_") and start.content == [] and start.role == "assistant"
    assert start.usage.input_tokens + start.usage.cache_read_input_tokens > 5
    assert delta.delta.stop_reason == "max_tokens" and delta.usage.output_tokens == 6


@check
def anthropic_system_blocks_and_metadata():
    def told(system, content, **options):
        messages = [{"role": "user", "content": content}]
        return claude.messages.create(
            model=MODEL, messages=messages, system=system, max_tokens=8, extra_body={"temperature": 0}, **options
        )

    def block(text):
        return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]

    plain = told("Be kind.", "A story about an owl.")
    blocks = told(block("Be kind."), block("A story about an owl."), metadata={"user_id": "ann"})
    assert plain.content[0].text and blocks.content[0].text == plain.content[0].text
    assert blocks.usage.cache_read_input_tokens > 0

    def n_input(usage):
        return usage.input_tokens + usage.cache_read_input_tokens

    assert n_input(blocks.usage) == n_input(plain.usage)


@check
def anthropic_counts_system_and_tools():
    tool = {"name": WEATHER["name"], "input_schema": WEATHER["parameters"]}
    options = {"model": MODEL, "messages": ASKED, "system": "Be kind.", "tools": [tool]}
    counted = claude.messages.count_tokens(**options).input_tokens
    usage = claude.messages.create(max_tokens=1, **options).usage
    assert counted == usage.input_tokens + usage.cache_read_input_tokens
    assert counted > claude.messages.count_tokens(model=MODEL, messages=ASKED).input_tokens


@check
def anthropic_streams_forced_calls():
    tool = {"name": WEATHER["name"], "input_schema": WEATHER["parameters"]}
    options = {"model": MODEL, "messages": ASKED, "max_tokens": 200, "tools": [tool]}
    options["extra_body"] = {"temperature": 0}
    for choice in ({"type": "any"}, {"type": "tool", "name": WEATHER["name"]}):
        with claude.messages.stream(**options, tool_choice=choice) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_message()
        call = final.content[-1]
        assert final.stop_reason == "tool_use" and "input_json" in kinds, (final.stop_reason, kinds)
        assert (call.type, call.name) == ("tool_use", WEATHER["name"]) and call.id
        assert call.input["city"] in ("Lima", "Cusco") and isinstance(call.input["days"], int)


@check
def anthropic_errors():
    create = claude.messages.create
    long = [{"role": "user", "content": "fox " * 4000}]
    too_long = refusal(anthropic.BadRequestError, create, model=MODEL, max_tokens=4, messages=long)
    assert too_long.body["type"] == "error" and "prompt is too long" in too_long.body["error"]["message"]
    wrong = refusal(anthropic.BadRequestError, create, model=MODEL, max_tokens=0, messages=ASKED)
    for error in (too_long, wrong):
        assert error.status_code == 400 and error.body["error"]["type"] == "invalid_request_error"
        assert error.request_id and error.body["request_id"] == error.request_id
    unknown = refusal(anthropic.NotFoundError, create, model="nobody", max_tokens=4, messages=ASKED)
    assert unknown.body["error"]["type"] == "not_found_error"


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
