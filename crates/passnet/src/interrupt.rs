//! Ctrl-C: what is under way comes to its end, or at least somebody says how to go on.

use passnet_bench::stop;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell expects of a program that Ctrl-C ended: 128 and the signal's number.
pub const EXIT_CODE: u8 = 130;

/// What a person is told who presses Ctrl-C.
#[derive(Debug)]
struct Words {
    /// The first time; work ends by itself soon.
    first: Option<String>,
    /// Before the process ends at once.
    last: String,
}

static WORDS: OnceLock<Words> = OnceLock::new();
static IS_SECOND: AtomicBool = AtomicBool::new(false);

/// The first Ctrl-C lets what is under way end and begins nothing new; the second ends the process.
pub fn finish_first(how_to_go_on: &str) {
    install(Words {
        first: Some(
            "\nstopping after what is under way; Ctrl-C again ends at once, without it\n".into(),
        ),
        last: format!("\nstopped; {how_to_go_on}\n"),
    });
}

/// Ctrl-C ends the process: all that is worth keeping is on the disk already.
pub fn end_at_once(how_to_go_on: &str) {
    install(Words { first: None, last: format!("\nstopped; {how_to_go_on}\n") });
}

fn install(words: Words) {
    if WORDS.set(words).is_err() {
        return;
    }
    let handler: extern "C" fn(c_int) = on_interrupt;
    // SAFETY: the structure is zeroed, which is a valid empty one, and lives through both calls; the handler calls only what
    // a signal handler may call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
    }
}

/// Runs in whatever thread the signal finds: it allocates nothing and takes no lock.
extern "C" fn on_interrupt(_: c_int) {
    let Some(words) = WORDS.get() else { return };
    let is_last = IS_SECOND.swap(true, Ordering::Relaxed) || words.first.is_none();
    stop::ask();
    let text = words.first.as_deref().filter(|_| !is_last).unwrap_or(&words.last);
    // SAFETY: the text lives as long as the process; both calls are allowed in a signal handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        if is_last {
            libc::_exit(c_int::from(EXIT_CODE));
        }
    }
}
