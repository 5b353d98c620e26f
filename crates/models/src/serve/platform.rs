//! Differences between platforms with and without threads.

pub use ggml_format::MaybeSend;

#[cfg(not(target_arch = "wasm32"))]
impl<E: super::Executor + 'static> super::Driver<E> {
    /// Runs on its own thread, which ends when all handles and answers are gone, or the device is lost for good. It
    /// holds the executor until then.
    ///
    /// # Errors
    /// No thread can be created.
    pub fn spawn(self) -> std::io::Result<std::thread::JoinHandle<Result<E, super::ServeError>>> {
        let name = "chaski-serve".to_owned();
        std::thread::Builder::new().name(name).spawn(move || pollster::block_on(self.run()))
    }
}
