//! Compile-time test: every public future, and everything that a server passes between threads, is `Send`.

use chaski::errors::ModelError;
use chaski::serve::{Answer, Event, Request};
use chaski::source::OpenModel;
use chaski::steps::{Driver, Runner, RunnerConfig};
use chaski::text::Tokenizer;
use chaski::tools::ImatrixOptions;
use chaski::{
    Chat, ChatEvent, Conversation, EmbedOptions, Engine, EngineBuilder, Error, GenerateOptions, Generation,
    Handle, Source,
};
use chaski_models::Target;

fn is_send<T: Send>(_: T) {}
fn goes_anywhere<T: Send + 'static>() {}
fn is_shared<T: Send + Sync + Clone + 'static>() {}
fn is_stream<T: futures_core::Stream + Send + Unpin + 'static>() {}

#[test]
fn values_go_to_any_thread() {
    is_shared::<Handle>();
    is_stream::<Answer>();
    is_stream::<Chat>();
    goes_anywhere::<Event>();
    goes_anywhere::<ChatEvent>();
    goes_anywhere::<Request>();
    goes_anywhere::<Engine>();
    goes_anywhere::<EngineBuilder>();
    goes_anywhere::<Driver>();
    goes_anywhere::<Runner>();
    goes_anywhere::<Error>();
    goes_anywhere::<GenerateOptions>();
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_engines(source: &Source, builder: EngineBuilder, mut engine: Engine, driver: Driver) {
    is_send(source.open());
    is_send(builder.build());
    is_send(engine.rebuild());
    is_send(engine.save());
    is_send(engine.restore(&[]));
    is_send(engine.embed(&["a"], &EmbedOptions::default()));
    is_send(driver.run());
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_answers(
    mut generation: Generation<'_>,
    mut conversation: Conversation<'_>,
    mut chat: Chat,
    mut answer: Answer,
) {
    is_send(generation.prompt());
    is_send(generation.next());
    is_send(conversation.next());
    is_send(conversation.whole());
    is_send(chat.next());
    is_send(chat.whole());
    is_send(answer.next());
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_models(
    model: &OpenModel,
    target: &Target,
    config: &RunnerConfig,
    runner: &mut Runner,
    tokenizer: &Tokenizer,
    options: &ImatrixOptions,
) {
    is_send(Runner::load(model, target, config, |_| {}));
    is_send(runner.prefill(&[]));
    is_send(runner.feed(&[]));
    is_send(runner.eval_all(&[], 1));
    is_send(runner.eval_hidden(&[]));
    is_send(runner.greedy(1));
    is_send(runner.logits());
    is_send(runner.save());
    is_send(runner.restore(&[]));
    is_send(chaski::tools::perplexity(runner, tokenizer, "", 2, None, |_, _, _| {}));
    let progress = |_: &chaski::tools::ImatrixProgress<'_>| Ok::<(), ModelError>(());
    is_send(chaski::tools::imatrix(runner, tokenizer, "", options, &|_| 1, progress));
}
