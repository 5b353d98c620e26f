//! Spans of requests for a collector: OTLP over HTTP.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanProcessor as _};
use tokio::runtime::Handle;

use crate::collector::Collector;
use crate::config::{Entry, Log};
use crate::trace::Trace;

/// Time for a collector to take a batch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A part of a request.
pub(crate) struct Part {
    pub(crate) name: Cow<'static, str>,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) attributes: Vec<KeyValue>,
    /// The error with which it ended.
    pub(crate) error: Option<String>,
}

impl Part {
    pub(crate) fn new(name: impl Into<Cow<'static, str>>, start: Instant, end: Instant) -> Part {
        Part { name: name.into(), start, end, attributes: Vec::new(), error: None }
    }
}

/// A list of texts as the value of an attribute.
pub(crate) fn texts(texts: impl Iterator<Item = &'static str>) -> Value {
    Value::Array(Array::String(texts.map(StringValue::from).collect()))
}

/// Sends spans to a collector, in batches, on a thread of its own. Where it does not keep up, spans are dropped.
pub(crate) struct Exporter {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    /// Inside of a runtime, which sends them.
    pub(crate) fn new(collector: &Collector, log: Option<Log>) -> Exporter {
        let endpoint = collector.address();
        let client = Client {
            inner: Arc::new(HyperClient::with_default_connector(TIMEOUT, None)),
            runtime: Handle::current(),
            endpoint: endpoint.to_owned(),
            has_failed: AtomicBool::new(false),
            log,
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(collector.traces())
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_timeout(TIMEOUT)
            .build()
            .expect("the address is a URL, and there is a client");
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder_empty().with_service_name("chaski").with_attribute(version).build();
        processor.set_resource(&resource);
        let scope = InstrumentationScope::builder("chaski").with_version(env!("CARGO_PKG_VERSION")).build();
        Exporter { processor, scope }
    }

    /// Sends a request, and the parts that it consists of.
    pub(crate) fn send(&self, trace: &Trace, request: Part, parts: Vec<Part>) {
        // Both clocks now, for times of one as those of the other.
        let clocks = (Instant::now(), SystemTime::now());
        for part in parts {
            let mut id = [0; 8];
            // A span without a name of its own is none.
            if getrandom::fill(&mut id).is_ok() {
                let place = Place { id, parent: Some(trace.span), is_remote: false };
                self.processor.on_end(self.span(trace, place, SpanKind::Internal, part, clocks));
            }
        }
        let place = Place { id: trace.span, parent: trace.parent, is_remote: trace.parent.is_some() };
        self.processor.on_end(self.span(trace, place, SpanKind::Server, request, clocks));
    }

    fn span(
        &self,
        trace: &Trace,
        place: Place,
        span_kind: SpanKind,
        part: Part,
        (now, time): (Instant, SystemTime),
    ) -> SpanData {
        let at = |instant: Instant| time - now.saturating_duration_since(instant);
        let context = SpanContext::new(
            TraceId::from_bytes(trace.id),
            SpanId::from_bytes(place.id),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        );
        SpanData {
            span_context: context,
            parent_span_id: place.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
            parent_span_is_remote: place.is_remote,
            span_kind,
            name: part.name,
            start_time: at(part.start),
            end_time: at(part.end),
            attributes: part.attributes,
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: part.error.map_or(Status::Unset, Status::error),
            instrumentation_scope: self.scope.clone(),
        }
    }

    /// Sends what is left. It blocks while the runtime sends it.
    pub(crate) fn end(&self) {
        if let Err(error) = self.processor.shutdown_with_timeout(TIMEOUT) {
            tracing::debug!("the last spans were not sent: {error}");
        }
    }
}

/// A span's place in its trace.
struct Place {
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    is_remote: bool,
}

/// A client whose requests run on the server's runtime, whatever thread they come from.
struct Client {
    inner: Arc<HyperClient>,
    runtime: Handle,
    endpoint: String,
    /// Failures are told once, until it works again.
    has_failed: AtomicBool,
    log: Option<Log>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Client {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let inner = self.inner.clone();
        let response = self.runtime.spawn(async move { inner.send_bytes(request).await }).await?;
        let failure = match &response {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answers with status {}", response.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        let had_failed = self.has_failed.swap(failure.is_some(), Ordering::Relaxed);
        if let (Some(failure), false, Some(log)) = (failure, had_failed, &self.log) {
            log(&Entry::Note(format!("spans cannot be sent to {}: {failure}", self.endpoint)));
        }
        response
    }
}

impl HttpClient for Client {
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.send(request))
    }
}
