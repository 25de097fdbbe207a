//! The functions of CPython and of PyTorch that a call needs, found in the process that loaded this library.
//!
//! CPython's are of its stable interface and found by name. PyTorch's are the C functions that its compiled models use
//! (`aoti_torch_…`); Python knows where they lie and says so, together with the place of the C++ tensor inside a Python
//! tensor. So nothing of either is needed to build this library.

use crate::failure::Failure;
use libloading::os::unix::Library;
use serde::Deserialize;
use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::fmt;
use std::sync::OnceLock;

/// `PyObject`.
#[derive(Debug)]
#[repr(C)]
pub struct Object([u8; 0]);

/// `PyObject *`.
pub type Ref = *mut Object;

/// A tensor as PyTorch's C functions take it: where its `at::Tensor` lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct TensorHandle(*mut c_void);

type Destructor = unsafe extern "C" fn(Ref);
type GetPointer = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> i32;
type GetWords = unsafe extern "C" fn(*mut c_void, *mut *mut i64) -> i32;
type GetLong = unsafe extern "C" fn(*mut c_void, *mut i64) -> i32;
type GetInt = unsafe extern "C" fn(*mut c_void, *mut i32) -> i32;
type GetStream = unsafe extern "C" fn(i32, *mut *mut c_void) -> i32;

/// `PyMethodDef`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct MethodDef {
    pub(super) name: *const c_char,
    pub(super) function: unsafe extern "C" fn(Ref, *const Ref, isize) -> Ref,
    pub(super) flags: c_int,
    pub(super) doc: *const c_char,
}

/// `METH_FASTCALL`: arguments come as an array.
pub(super) const FASTCALL: c_int = 0x80;
/// `Py_EQ`.
const EQUAL: c_int = 2;

// SAFETY: it points to constant text only.
unsafe impl Sync for MethodDef {}

/// What Python knows about PyTorch; addresses are those of functions in its libraries.
#[derive(Debug, Deserialize)]
struct Torch {
    /// Where in a Python tensor its `at::Tensor` lies.
    tensor_offset: usize,
    get_data_ptr: usize,
    get_sizes: usize,
    get_strides: usize,
    get_dim: usize,
    get_dtype: usize,
    get_device_type: usize,
    get_device_index: usize,
    /// 0 where PyTorch has no CUDA.
    get_current_cuda_stream: usize,
}

/// Everything that a call needs; made once for the process.
pub(super) struct Api {
    pub(super) incref: unsafe extern "C" fn(Ref),
    pub(super) decref: unsafe extern "C" fn(Ref),
    pub(super) call: unsafe extern "C" fn(Ref, Ref, Ref) -> Ref,
    pub(super) type_of: unsafe extern "C" fn(Ref) -> Ref,
    compare: unsafe extern "C" fn(Ref, Ref, c_int) -> c_int,
    pub(super) tuple_new: unsafe extern "C" fn(isize) -> Ref,
    pub(super) tuple_set: unsafe extern "C" fn(Ref, isize, Ref) -> c_int,
    pub(super) tuple_get: unsafe extern "C" fn(Ref, isize) -> Ref,
    pub(super) tuple_size: unsafe extern "C" fn(Ref) -> isize,
    pub(super) function_new: unsafe extern "C" fn(*const MethodDef, Ref, Ref) -> Ref,
    pub(super) capsule_new:
        unsafe extern "C" fn(*mut c_void, *const c_char, Option<Destructor>) -> Ref,
    pub(super) capsule_get: unsafe extern "C" fn(Ref, *const c_char) -> *mut c_void,
    error_set: unsafe extern "C" fn(Ref, *const c_char),
    error_clear: unsafe extern "C" fn(),
    get_data_ptr: GetPointer,
    get_sizes: GetWords,
    get_strides: GetWords,
    get_dim: GetLong,
    get_dtype: GetInt,
    get_device_type: GetInt,
    get_device_index: GetInt,
    get_stream: Option<GetStream>,
    tensor_offset: usize,
    /// `torch.Tensor` and the exception to raise; held for the life of the process.
    tensor_type: Ref,
    error_type: Ref,
}

// SAFETY: functions, and two objects that are only touched where the interpreter's lock is held.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

static API: OnceLock<Api> = OnceLock::new();

impl Api {
    /// Finds everything, once.
    ///
    /// # Safety
    /// This is a Python process whose lock is held, the objects are a type and an exception, and the addresses in the
    /// JSON are those of the functions they are named after.
    pub(super) unsafe fn set_up(json: &[u8], tensor: Ref, error: Ref) -> Result<(), Failure> {
        if API.get().is_some() {
            return Ok(());
        }
        let torch: Torch = serde_json::from_slice(json)
            .map_err(|error| Failure::call(format!("the description of PyTorch: {error}")))?;
        // SAFETY: the caller's promise.
        let api = unsafe { Api::find(&torch, tensor, error) }.ok_or_else(|| {
            Failure::call("a function of Python or PyTorch is missing in this process")
        })?;
        // SAFETY: living objects, as the caller promises.
        unsafe {
            (api.incref)(tensor);
            (api.incref)(error);
        }
        // A second thread may have been faster: then its table stays, which is the same.
        let _ = API.set(api);
        Ok(())
    }

    pub(super) fn get() -> Result<&'static Api, Failure> {
        API.get().ok_or_else(|| Failure::call("nothing is known about Python yet: pn_python first"))
    }

    /// # Safety
    /// As for [`set_up`](Self::set_up).
    unsafe fn find(torch: &Torch, tensor_type: Ref, error_type: Ref) -> Option<Api> {
        let process = Library::this();
        macro_rules! python {
            ($name:literal) => {
                // SAFETY: each field's type is the signature of that function in CPython's stable interface.
                unsafe { *process.get(concat!($name, "\0").as_bytes()).ok()? }
            };
        }
        macro_rules! torch {
            ($field:ident as $kind:ty) => {{
                if torch.$field == 0 {
                    return None;
                }
                // SAFETY: the address of that function, whose signature in PyTorch's `shim.h` this is.
                unsafe { std::mem::transmute::<usize, $kind>(torch.$field) }
            }};
        }
        let get_stream = match torch.get_current_cuda_stream {
            0 => None,
            // SAFETY: as above.
            address => Some(unsafe { std::mem::transmute::<usize, GetStream>(address) }),
        };
        Some(Api {
            incref: python!("Py_IncRef"),
            decref: python!("Py_DecRef"),
            call: python!("PyObject_Call"),
            type_of: python!("PyObject_Type"),
            compare: python!("PyObject_RichCompareBool"),
            tuple_new: python!("PyTuple_New"),
            tuple_set: python!("PyTuple_SetItem"),
            tuple_get: python!("PyTuple_GetItem"),
            tuple_size: python!("PyTuple_Size"),
            function_new: python!("PyCFunction_NewEx"),
            capsule_new: python!("PyCapsule_New"),
            capsule_get: python!("PyCapsule_GetPointer"),
            error_set: python!("PyErr_SetString"),
            error_clear: python!("PyErr_Clear"),
            get_data_ptr: torch!(get_data_ptr as GetPointer),
            get_sizes: torch!(get_sizes as GetWords),
            get_strides: torch!(get_strides as GetWords),
            get_dim: torch!(get_dim as GetLong),
            get_dtype: torch!(get_dtype as GetInt),
            get_device_type: torch!(get_device_type as GetInt),
            get_device_index: torch!(get_device_index as GetInt),
            get_stream,
            tensor_offset: torch.tensor_offset,
            tensor_type,
            error_type,
        })
    }

    /// Whether two objects are of the same type.
    ///
    /// # Safety
    /// The lock is held; living objects.
    #[inline]
    pub(super) unsafe fn same_type(&self, one: Ref, two: Ref) -> bool {
        // SAFETY: living objects; each type comes with a reference that is given back.
        unsafe {
            let (a, b) = ((self.type_of)(one), (self.type_of)(two));
            (self.decref)(a);
            (self.decref)(b);
            a == b
        }
    }

    /// The tensor in an object that is exactly a `torch.Tensor`.
    ///
    /// # Safety
    /// The lock is held; a living object.
    #[inline]
    pub(super) unsafe fn tensor(&self, object: Ref) -> Option<TensorHandle> {
        // SAFETY: a living object; of a tensor, `tensor_offset` lies inside.
        unsafe {
            let kind = (self.type_of)(object);
            (self.decref)(kind);
            let inside = object.cast::<u8>().wrapping_add(self.tensor_offset);
            (kind == self.tensor_type).then_some(TensorHandle(inside.cast()))
        }
    }

    /// # Safety
    /// The tensor lives.
    #[inline]
    pub(super) unsafe fn address(&self, tensor: TensorHandle) -> Option<u64> {
        let mut address = std::ptr::null_mut();
        // SAFETY: a living tensor; writes one pointer.
        let code = unsafe { (self.get_data_ptr)(tensor.0, &mut address) };
        (code == 0).then_some(address.addr() as u64)
    }

    /// Element type, kind of device and number of the device, as PyTorch counts them.
    ///
    /// # Safety
    /// The tensor lives.
    #[inline]
    pub(super) unsafe fn kind(&self, tensor: TensorHandle) -> Option<[i32; 3]> {
        let mut kind = [0; 3];
        let [dtype, device, index] = &mut kind;
        // SAFETY: a living tensor; each writes one integer.
        let codes = unsafe {
            (self.get_dtype)(tensor.0, dtype)
                | (self.get_device_type)(tensor.0, device)
                | (self.get_device_index)(tensor.0, index)
        };
        (codes == 0).then_some(kind)
    }

    /// Sizes and strides; they lie in the tensor.
    ///
    /// # Safety
    /// The tensor lives and keeps its shape for `'a`.
    #[inline]
    pub(super) unsafe fn layout<'a>(&self, tensor: TensorHandle) -> Option<(&'a [i64], &'a [i64])> {
        let (mut dim, mut sizes, mut strides) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a living tensor; each writes one word.
        let codes = unsafe {
            (self.get_dim)(tensor.0, &mut dim)
                | (self.get_sizes)(tensor.0, &mut sizes)
                | (self.get_strides)(tensor.0, &mut strides)
        };
        let dim = usize::try_from(dim).ok()?;
        if codes != 0 {
            return None;
        }
        if dim == 0 {
            return Some((&[], &[]));
        }
        if sizes.is_null() || strides.is_null() {
            return None;
        }
        // SAFETY: `dim` words each, as long as the tensor lives and is not resized.
        Some(unsafe {
            (std::slice::from_raw_parts(sizes, dim), std::slice::from_raw_parts(strides, dim))
        })
    }

    /// The stream that PyTorch queues on now.
    ///
    /// # Safety
    /// PyTorch computes on that device.
    #[inline]
    pub(super) unsafe fn stream(&self, device: i32) -> Option<u64> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        let code = unsafe { (self.get_stream?)(device, &mut stream) };
        (code == 0).then_some(stream.addr() as u64)
    }

    /// Whether PyTorch can say which stream it queues on.
    pub(super) fn has_streams(&self) -> bool {
        self.get_stream.is_some()
    }

    /// Equality of two plain values; one that raises is none.
    ///
    /// # Safety
    /// The lock is held; living objects.
    #[inline]
    pub(super) unsafe fn equal(&self, one: Ref, two: Ref) -> bool {
        // SAFETY: living objects.
        match unsafe { (self.compare)(one, two, EQUAL) } {
            code @ (0 | 1) => code == 1,
            _ => {
                // SAFETY: forgets the exception that was just raised.
                unsafe { (self.error_clear)() };
                false
            }
        }
    }

    /// Raises our exception.
    ///
    /// # Safety
    /// The lock is held.
    pub(super) unsafe fn raise(&self, text: &str) {
        let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        // SAFETY: an exception type and a terminated text, which is copied.
        unsafe { (self.error_set)(self.error_type, text.as_ptr()) };
    }
}

/// An object that is held.
#[derive(Debug)]
pub(super) struct Held(Ref);

impl Held {
    /// # Safety
    /// A living object, or null; the lock is held, also when this is dropped.
    pub(super) unsafe fn new(api: &Api, object: Ref) -> Option<Held> {
        if object.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { (api.incref)(object) };
        Some(Held(object))
    }

    #[inline]
    pub(super) fn get(&self) -> Ref {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Ok(api) = Api::get() {
            // SAFETY: held since `new`; the lock is held by its promise.
            unsafe { (api.decref)(self.0) };
        }
    }
}

/// A count that Python passes.
pub(super) fn index(count: isize) -> Option<usize> {
    usize::try_from(count).ok()
}

const _: () = assert!(size_of::<c_long>() == size_of::<isize>(), "64-bit Linux");
