//! What went wrong, as a code for the caller and a text kept for the thread that asked.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;

/// The call itself is wrong: JSON, counts, pointers, a plan this machine cannot run.
pub const BAD_CALL: i32 = -1;
/// A kernel did what it must not do.
pub const KERNEL_FAILED: i32 = -2;
/// The CUDA driver refused.
pub const CUDA_FAILED: i32 = -3;
/// A panic: our own mistake.
pub const OUR_BUG: i32 = -70;

#[derive(Debug)]
pub(crate) struct Failure {
    code: i32,
    text: String,
}

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Failure {
    pub(crate) fn call(text: impl Into<String>) -> Self {
        Failure { code: BAD_CALL, text: text.into() }
    }

    pub(crate) fn kernel(text: impl Into<String>) -> Self {
        Failure { code: KERNEL_FAILED, text: text.into() }
    }

    pub(crate) fn cuda(text: impl Into<String>) -> Self {
        Failure { code: CUDA_FAILED, text: text.into() }
    }

    pub(crate) fn panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "without a message".into());
        Failure { code: OUR_BUG, text: format!("bug in passnet-runner: {text}") }
    }

    /// The same failure, with what it is about before it.
    pub(crate) fn about(self, what: &str) -> Self {
        Failure { code: self.code, text: format!("{what}: {}", self.text) }
    }

    /// Keeps the text for this thread and gives the code.
    pub(crate) fn record(self) -> i32 {
        let text = self.text;
        LAST.with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = text;
            }
        });
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(crate) fn with_last<T>(look: impl FnOnce(&str) -> T) -> T {
    LAST.with(|last| match last.try_borrow() {
        Ok(last) => look(&last),
        Err(_) => look(""),
    })
}
