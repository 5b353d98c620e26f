//! Variables that libraries of the system read, set before the first thread starts.

/// Turns off Mesa's Vulkan layer `device_select` in a session without displays, where it cannot ask one for its GPU and
/// complains on stderr at every start. It only sorts devices, which this program does itself.
///
/// Settings of the user stay: the layer's own variables, and those of a session that has displays.
pub(crate) fn silence_device_select() {
    const OFF: &str = "NODEVICE_SELECT";
    let is_set = |name: &str| std::env::var_os(name).is_some();
    // The condition under which libwayland complains.
    let has_runtime_dir =
        std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|dir| dir.as_encoded_bytes().starts_with(b"/"));
    if cfg!(target_os = "linux") && !has_runtime_dir && !is_set("MESA_VK_DEVICE_SELECT") && !is_set(OFF) {
        set(OFF, "1");
    }
}

/// Sets a variable of this process and its children.
#[allow(unsafe_code, reason = "libraries of the system read their settings from nowhere else")]
fn set(name: &str, value: &str) {
    // SAFETY: no other thread reads the environment meanwhile: `main` calls this before anything that starts a thread.
    unsafe { std::env::set_var(name, value) }
}
