//! The differences between platforms with threads and those without.

pub use ggml_format::MaybeSend;

#[cfg(not(target_arch = "wasm32"))]
impl<E: super::Executor + 'static> super::Driver<E> {
    /// Runs on a thread of its own, which ends when all handles and answers are gone, or the device is lost for
    /// good. It holds the executor until then.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub fn spawn(self) -> std::io::Result<std::thread::JoinHandle<Result<E, super::ServeError>>> {
        let name = "chaski-serve".to_owned();
        std::thread::Builder::new().name(name).spawn(move || pollster::block_on(self.run()))
    }
}
