//! Compile-time test: the futures of a server are `Send`, so that any runtime takes them.

use chaski_server::{Server, ServerConfig};

fn is_send<T: Send>(_: T) {}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_a_server(server: Server, config: ServerConfig, stop: impl Future<Output = ()> + Send) {
    is_send(Server::bind(config));
    is_send(server.run(stop));
}

#[test]
fn a_server_goes_to_any_thread() {
    fn goes_anywhere<T: Send + 'static>() {}
    goes_anywhere::<Server>();
    goes_anywhere::<ServerConfig>();
}
