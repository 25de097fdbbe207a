//! The few functions of the CUDA driver that replaying needs, found in `libcuda` when first asked for.
//!
//! Building needs nothing of CUDA; a machine without it gets an error that says so.

use crate::failure::Failure;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::sync::OnceLock;

/// `CUresult`; 0 is success.
pub(crate) type Code = c_int;
/// `CUmodule`.
pub(crate) type Module = *mut c_void;
/// `CUfunction`.
pub(crate) type Function = *mut c_void;
/// `CUstream`.
pub(crate) type Stream = *mut c_void;

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: c_int = 8;

/// Signatures are those of `cuda.h`, where a device pointer is a 64-bit integer.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) init: unsafe extern "C" fn(c_uint) -> Code,
    pub(crate) current_context: unsafe extern "C" fn(*mut *mut c_void) -> Code,
    pub(crate) error_name: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    pub(crate) error_text: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    pub(crate) load_module: unsafe extern "C" fn(*mut Module, *const c_void) -> Code,
    pub(crate) unload_module: unsafe extern "C" fn(Module) -> Code,
    pub(crate) get_function: unsafe extern "C" fn(*mut Function, Module, *const c_char) -> Code,
    pub(crate) set_attribute: unsafe extern "C" fn(Function, c_int, c_int) -> Code,
    #[rustfmt::skip]
    pub(crate) launch: unsafe extern "C" fn(
        Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void, *mut *mut c_void,
    ) -> Code,
    pub(crate) set_bytes: unsafe extern "C" fn(u64, u8, usize, Stream) -> Code,
    pub(crate) set_halves: unsafe extern "C" fn(u64, u16, usize, Stream) -> Code,
    pub(crate) set_words: unsafe extern "C" fn(u64, c_uint, usize, Stream) -> Code,
    /// Address, bytes from row to row, value, words in a row, rows.
    pub(crate) set_word_rows:
        unsafe extern "C" fn(u64, usize, c_uint, usize, usize, Stream) -> Code,
    pub(crate) upload: unsafe extern "C" fn(u64, *const c_void, usize, Stream) -> Code,
}

impl Functions {
    fn find(library: &Library) -> Result<Self, libloading::Error> {
        macro_rules! find {
            ($($field:ident: $symbol:literal),* $(,)?) => {
                // SAFETY: each field's type is the signature of that symbol in `cuda.h`, stable since CUDA 11.
                unsafe { Functions { $($field: *library.get(concat!($symbol, "\0").as_bytes())?),* } }
            };
        }
        Ok(find! {
            init: "cuInit",
            current_context: "cuCtxGetCurrent",
            error_name: "cuGetErrorName",
            error_text: "cuGetErrorString",
            load_module: "cuModuleLoadData",
            unload_module: "cuModuleUnload",
            get_function: "cuModuleGetFunction",
            set_attribute: "cuFuncSetAttribute",
            launch: "cuLaunchKernel",
            set_bytes: "cuMemsetD8Async",
            set_halves: "cuMemsetD16Async",
            set_words: "cuMemsetD32Async",
            set_word_rows: "cuMemsetD2D32Async",
            upload: "cuMemcpyHtoDAsync_v2",
        })
    }
}

/// The driver; its library stays open for the life of the process.
pub(crate) struct Driver {
    pub(crate) functions: Functions,
    _library: Option<Library>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

impl Driver {
    pub(crate) fn of_this_machine() -> Result<&'static Driver, Failure> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        let driver = DRIVER.get_or_init(|| {
            let open = |name: &str| {
                // SAFETY: the driver's initialisers are what every CUDA program runs.
                unsafe { Library::new(name) }
            };
            let library = open("libcuda.so.1")
                .or_else(|_| open("libcuda.so"))
                .map_err(|error| format!("no CUDA driver on this machine: {error}"))?;
            let functions = Functions::find(&library)
                .map_err(|error| format!("the CUDA driver is too old: {error}"))?;
            let driver = Driver { functions, _library: Some(library) };
            // SAFETY: `cuInit` takes 0 and may be called any number of times.
            let initialised = unsafe { (functions.init)(0) };
            driver
                .check("initialising CUDA", initialised)
                .map_err(|failure| failure.to_string())?;
            Ok(driver)
        });
        driver.as_ref().map_err(|text| Failure::cuda(text.clone()))
    }

    #[cfg(test)]
    pub(crate) fn with_functions(functions: Functions) -> Driver {
        Driver { functions, _library: None }
    }

    /// What a code means, for people.
    #[inline]
    pub(crate) fn check(&self, doing: &str, code: Code) -> Result<(), Failure> {
        if code == 0 { Ok(()) } else { Err(self.failure(doing, code)) }
    }

    #[cold]
    fn failure(&self, doing: &str, code: Code) -> Failure {
        let text = |look: unsafe extern "C" fn(Code, *mut *const c_char) -> Code| {
            let mut text = std::ptr::null();
            // SAFETY: writes one pointer, to a static string or null.
            let found = unsafe { look(code, &mut text) } == 0 && !text.is_null();
            // SAFETY: a static, terminated string of the driver.
            found.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = text(self.functions.error_name).unwrap_or_else(|| format!("error {code}"));
        let meaning = text(self.functions.error_text).unwrap_or_default();
        Failure::cuda(format!("{doing}: {name} ({meaning})"))
    }

    pub(crate) fn require_context(&self) -> Result<(), Failure> {
        let mut context = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        let code = unsafe { (self.functions.current_context)(&mut context) };
        self.check("looking for the CUDA context", code)?;
        if context.is_null() {
            return Err(Failure::cuda(
                "this thread has no CUDA context; touch a CUDA tensor in it first",
            ));
        }
        Ok(())
    }

    pub(crate) fn load(&self, cubin: &[u8]) -> Result<Module, Failure> {
        let mut module = std::ptr::null_mut();
        // SAFETY: the cubin is an ELF file, whose headers the driver checks; the context is current.
        let code = unsafe { (self.functions.load_module)(&mut module, cubin.as_ptr().cast()) };
        self.check("loading a cubin", code)?;
        Ok(module)
    }

    /// The entry `name` of a module, allowed to use `shared` bytes of dynamic shared memory.
    pub(crate) fn function(
        &self,
        module: Module,
        name: &CStr,
        shared: c_int,
    ) -> Result<Function, Failure> {
        /// More than this must be asked for.
        const SHARED_WITHOUT_ASKING: c_int = 48 << 10;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name terminated.
        let code = unsafe { (self.functions.get_function)(&mut function, module, name.as_ptr()) };
        self.check(&format!("finding the kernel {name:?}"), code)?;
        if shared > SHARED_WITHOUT_ASKING {
            // SAFETY: the function is valid as long as its module.
            let code =
                unsafe { (self.functions.set_attribute)(function, MAX_DYNAMIC_SHARED, shared) };
            self.check(&format!("asking for {shared} bytes of shared memory"), code)?;
        }
        Ok(function)
    }
}
