"""LangChain, LlamaIndex, instructor and pydantic-ai against a server, with the versions of `requirements-frameworks.txt`.

    python frameworks_check.py URL
"""

import sys
from typing import Literal

import instructor
import openai
from checks import check, run
from langchain_openai import ChatOpenAI
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

BASE, MODEL, KEY = sys.argv[1] + "/v1", "golden", "none"
QUESTION = "Tell me a story."


class Fox(BaseModel):
    """A typed answer."""

    kind: Literal["red", "grey"]


def langchain(max_tokens):
    return ChatOpenAI(base_url=BASE, api_key=KEY, model=MODEL, temperature=0, max_tokens=max_tokens)


@check
def langchain_answers_and_streams():
    answer = langchain(12).invoke(QUESTION)
    assert answer.content and answer.usage_metadata["output_tokens"] == 12, answer
    assert "".join(chunk.content for chunk in langchain(12).stream(QUESTION)) == answer.content


@check
def langchain_has_typed_answers():
    typed = langchain(60).with_structured_output(Fox, method="json_schema")
    assert isinstance(typed.invoke("A fox?"), Fox)


@check
def instructor_has_typed_answers():
    client = instructor.from_openai(openai.OpenAI(base_url=BASE, api_key=KEY), mode=instructor.Mode.JSON_SCHEMA)
    messages = [{"role": "user", "content": "A fox?"}]
    options = {"model": MODEL, "temperature": 0, "max_tokens": 60, "max_retries": 0}
    assert isinstance(client.chat.completions.create(response_model=Fox, messages=messages, **options), Fox)


@check
def pydantic_ai_has_typed_answers():
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=BASE, api_key=KEY))
    agent = Agent(model, output_type=NativeOutput(Fox), model_settings={"temperature": 0, "max_tokens": 60})
    assert isinstance(agent.run_sync("A fox?").output, Fox)


@check
def llama_index_completes_and_streams():
    llm = OpenAILike(
        model=MODEL, api_base=BASE, api_key=KEY, is_chat_model=True, temperature=0, max_tokens=12, context_window=512
    )
    text = llm.complete(QUESTION).text
    assert text and "".join(piece.delta or "" for piece in llm.stream_complete(QUESTION)) == text


run()
