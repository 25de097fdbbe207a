//! What a replaced node of a graph calls: a Python function whose body is here.
//!
//! It knows some plans. Arguments that look like those a plan was made for (type, device, shape, strides, alignment) are
//! given to that plan: fresh tensors from PyTorch's allocator, PyTorch's stream, launch, results. No object is made but the
//! results. Arguments that fit no plan go to the slow function, which is Python and may add a plan.

use super::api::{Api, Held, Ref, index};
use crate::Plan;
use crate::failure::Failure;
use serde::Deserialize;
use std::cell::RefCell;
use std::time::Instant;

/// A function for Python: the plans it has so far, and what to ask for another one.
#[derive(Debug)]
pub struct Call {
    api: &'static Api,
    slow: Held,
    plans: RefCell<Vec<Quick>>,
}

/// How buffers of a plan come about and which of them are results.
#[derive(Debug, Deserialize)]
pub(super) struct Layout {
    /// For each buffer the argument that it is; `None` for a fresh one.
    buffers: Vec<Option<usize>>,
    returns: Vec<usize>,
    /// For each result whether it is a view of its buffer.
    views: Vec<bool>,
    is_sequence: bool,
    steps: usize,
    /// Number of the GPU; `None` for the CPU.
    device: Option<i32>,
}

/// A plan and what its arguments look like.
#[derive(Debug)]
struct Quick {
    plan: *const Plan,
    arguments: Vec<Expected>,
    layout: Layout,
    /// For each fresh buffer a function of PyTorch's and its arguments.
    fresh: Vec<(Held, Held)>,
    /// For each result that is a view the function of PyTorch's and its arguments after the tensor.
    views: Vec<(Held, Held)>,
    scratch: RefCell<Scratch>,
}

/// Room for one call.
#[derive(Debug, Default)]
struct Scratch {
    /// Of each argument, 0 for what is no tensor.
    given: Vec<u64>,
    /// Of each buffer, and the object it belongs to.
    addresses: Vec<u64>,
    objects: Vec<Ref>,
    /// Objects among them that are ours.
    made: Vec<Ref>,
}

#[derive(Debug)]
enum Expected {
    Tensor { kind: [i32; 3], shape: Box<[i64]>, stride: Box<[i64]>, is_aligned: bool },
    Value(Held),
}

/// Addresses divisible by this are called aligned.
const ALIGNMENT: u64 = 16;

/// Looks at the time between the stages of a call, or does not.
trait Clock {
    fn lap(&mut self, stage: usize);
}

struct NoClock;

impl Clock for NoClock {
    #[inline]
    fn lap(&mut self, _: usize) {}
}

/// Nanoseconds of guards, of allocation and of the launch.
pub(super) struct Laps {
    last: Instant,
    nanoseconds: [u64; 3],
}

impl Clock for Laps {
    fn lap(&mut self, stage: usize) {
        let now = Instant::now();
        self.nanoseconds[stage] += now.duration_since(self.last).as_nanos() as u64;
        self.last = now;
    }
}

/// How a call ended that went the quick way.
enum QuickCall {
    Done(Ref),
    /// No plan fits.
    Miss,
    /// A Python exception is set.
    Raised,
}

impl Call {
    /// # Safety
    /// The lock is held, and `slow` is a living object.
    pub(super) unsafe fn new(slow: Ref) -> Result<Call, Failure> {
        let api = Api::get()?;
        // SAFETY: the caller's promise.
        let slow = unsafe { Held::new(api, slow) };
        let slow = slow.ok_or_else(|| Failure::call("the slow function is null"))?;
        Ok(Call { api, slow, plans: RefCell::default() })
    }

    /// Remembers a plan for arguments that look like these.
    ///
    /// # Safety
    /// The lock is held; `arguments` and `fresh` are tuples; the plan lives as long as this call. What makes views stands
    /// after what makes buffers in `fresh`.
    pub(super) unsafe fn add(
        &self,
        plan: *const Plan,
        layout: Layout,
        arguments: Ref,
        fresh: Ref,
    ) -> Result<(), Failure> {
        let api = self.api;
        // SAFETY: the caller's promise; a tuple's items live as long as it does.
        let (arguments, fresh) = unsafe { (items(api, arguments)?, items(api, fresh)?) };
        let buffers = layout.buffers.iter().filter(|buffer| buffer.is_none()).count();
        let makers = buffers + layout.views.iter().filter(|is_view| **is_view).count();
        let fits = layout.buffers.iter().flatten().all(|argument| *argument < arguments.len())
            && makers == fresh.len()
            && layout.views.len() == layout.returns.len()
            && layout.returns.iter().all(|buffer| *buffer < layout.buffers.len())
            && (layout.is_sequence || layout.returns.len() == 1)
            && (layout.device.is_none() || api.has_streams());
        if !fits {
            return Err(Failure::call("the layout of the call does not fit its arguments"));
        }
        // SAFETY: living objects.
        let expected = unsafe { arguments.iter().map(|&object| Expected::of(api, object)) };
        let expected = expected.collect::<Option<Vec<_>>>();
        let expected =
            expected.ok_or_else(|| Failure::call("PyTorch does not describe an argument"))?;
        if layout.buffers.iter().flatten().any(|&argument| !expected[argument].is_tensor()) {
            return Err(Failure::call("a buffer of the plan is no tensor"));
        }
        let mut makers = Vec::with_capacity(fresh.len());
        for pair in fresh {
            // SAFETY: a living object, checked to be a pair.
            let pair = unsafe { items(api, pair)? };
            let [function, arguments] = pair[..] else {
                return Err(Failure::call("a buffer or a view is a function and its arguments"));
            };
            // SAFETY: items of a living pair.
            let held = unsafe { (Held::new(api, function), Held::new(api, arguments)) };
            let (Some(function), Some(arguments)) = held else {
                return Err(Failure::call("a buffer or a view is a function and its arguments"));
            };
            makers.push((function, arguments));
        }
        let views = makers.split_off(buffers);
        let scratch = RefCell::default();
        let quick = Quick { plan, arguments: expected, layout, fresh: makers, views, scratch };
        let mut plans = self.plans.try_borrow_mut();
        let plans = plans.as_mut().map_err(|_| Failure::call("the call is running"))?;
        plans.push(quick);
        Ok(())
    }

    /// One call from Python.
    ///
    /// # Safety
    /// The lock is held, and the arguments are living objects.
    pub(super) unsafe fn run(&self, arguments: &[Ref]) -> Ref {
        // SAFETY: the caller's promise.
        match unsafe { self.quick(arguments, &mut NoClock) } {
            QuickCall::Done(result) => result,
            QuickCall::Raised => std::ptr::null_mut(),
            // SAFETY: as above.
            QuickCall::Miss => unsafe { self.slow(arguments) },
        }
    }

    /// Calls the quick way that many times and gives the nanoseconds of each stage, all together.
    ///
    /// # Safety
    /// The lock is held, and `arguments` is a tuple.
    pub(super) unsafe fn measure(
        &self,
        arguments: Ref,
        repeats: usize,
    ) -> Result<[u64; 3], Failure> {
        // SAFETY: the caller's promise.
        let arguments = unsafe { items(self.api, arguments)? };
        let mut laps = Laps { last: Instant::now(), nanoseconds: [0; 3] };
        for _ in 0..repeats {
            laps.last = Instant::now();
            // SAFETY: living objects of a living tuple.
            match unsafe { self.quick(&arguments, &mut laps) } {
                // SAFETY: the result is ours.
                QuickCall::Done(result) => unsafe { (self.api.decref)(result) },
                QuickCall::Miss => return Err(Failure::call("no plan fits these arguments")),
                QuickCall::Raised => return Err(Failure::call("the plan did not run")),
            }
        }
        Ok(laps.nanoseconds)
    }

    /// # Safety
    /// The lock is held, and the arguments are living objects.
    #[inline]
    unsafe fn quick(&self, arguments: &[Ref], clock: &mut impl Clock) -> QuickCall {
        let Ok(plans) = self.plans.try_borrow() else { return QuickCall::Miss };
        for plan in plans.iter() {
            // Where a call of this plan is under way already (an allocation that ran Python), the slow way is right, too.
            let Ok(mut scratch) = plan.scratch.try_borrow_mut() else { return QuickCall::Miss };
            // SAFETY: living objects, the lock is held.
            if unsafe { plan.fits(self.api, arguments, &mut scratch.given) } {
                clock.lap(0);
                // SAFETY: as above, and the arguments are what the plan wants.
                return unsafe { plan.run(self.api, arguments, &mut scratch, clock) };
            }
        }
        QuickCall::Miss
    }

    /// # Safety
    /// The lock is held, and the arguments are living objects.
    unsafe fn slow(&self, arguments: &[Ref]) -> Ref {
        let api = self.api;
        // SAFETY: living objects; `tuple_set` takes over the references that `incref` made.
        unsafe {
            let tuple = (api.tuple_new)(arguments.len() as isize);
            if tuple.is_null() {
                return tuple;
            }
            for (index, &argument) in arguments.iter().enumerate() {
                (api.incref)(argument);
                (api.tuple_set)(tuple, index as isize, argument);
            }
            let result = (api.call)(self.slow.get(), tuple, std::ptr::null_mut());
            (api.decref)(tuple);
            result
        }
    }
}

impl Quick {
    /// Whether the arguments look as they must; their addresses are written down on the way.
    ///
    /// # Safety
    /// The lock is held, and the arguments are living objects.
    #[inline]
    unsafe fn fits(&self, api: &Api, arguments: &[Ref], given: &mut Vec<u64>) -> bool {
        given.clear();
        arguments.len() == self.arguments.len()
            && self.arguments.iter().zip(arguments).all(|(expected, &argument)| {
                // SAFETY: living objects.
                match unsafe { expected.fits(api, argument) } {
                    Some(address) => {
                        given.push(address);
                        true
                    }
                    None => false,
                }
            })
    }

    /// # Safety
    /// The lock is held; the arguments are living objects, and `fits` has just said that they fit.
    #[inline]
    unsafe fn run(
        &self,
        api: &Api,
        arguments: &[Ref],
        scratch: &mut Scratch,
        clock: &mut impl Clock,
    ) -> QuickCall {
        scratch.addresses.clear();
        scratch.objects.clear();
        scratch.made.clear();
        // SAFETY: as promised to us.
        let made = unsafe { self.allocate(api, arguments, scratch) };
        clock.lap(1);
        let outcome = match made {
            Err(outcome) => outcome,
            // SAFETY: as above.
            Ok(()) => match unsafe { self.launch(api, &scratch.addresses) } {
                // SAFETY: as above.
                Ok(()) => unsafe { self.results(api, &scratch.objects) },
                Err(failure) => {
                    // SAFETY: the lock is held.
                    unsafe { api.raise(&failure.to_string()) };
                    QuickCall::Raised
                }
            },
        };
        for &object in &scratch.made {
            // SAFETY: ours; results have a reference of their own by now.
            unsafe { (api.decref)(object) };
        }
        clock.lap(2);
        outcome
    }

    /// Every buffer's object and address.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    #[inline]
    unsafe fn allocate(
        &self,
        api: &Api,
        arguments: &[Ref],
        scratch: &mut Scratch,
    ) -> Result<(), QuickCall> {
        let mut makers = self.fresh.iter();
        for buffer in &self.layout.buffers {
            let (object, address) = match buffer {
                Some(argument) => (arguments[*argument], scratch.given[*argument]),
                None => {
                    let Some((function, with)) = makers.next() else { return Err(QuickCall::Miss) };
                    // SAFETY: objects that are held.
                    let object =
                        unsafe { (api.call)(function.get(), with.get(), std::ptr::null_mut()) };
                    if object.is_null() {
                        return Err(QuickCall::Raised);
                    }
                    scratch.made.push(object);
                    // SAFETY: a new object.
                    let address =
                        unsafe { api.tensor(object).and_then(|tensor| api.address(tensor)) };
                    (object, address.ok_or(QuickCall::Miss)?)
                }
            };
            scratch.objects.push(object);
            scratch.addresses.push(address);
        }
        Ok(())
    }

    /// # Safety
    /// The addresses are those of the plan's buffers, which live and which nobody else touches meanwhile.
    #[inline]
    unsafe fn launch(&self, api: &Api, addresses: &[u64]) -> Result<(), Failure> {
        if self.layout.steps == 0 {
            return Ok(());
        }
        let stream = match self.layout.device {
            None => 0,
            // SAFETY: PyTorch computes on that device.
            Some(device) => unsafe { api.stream(device) }
                .ok_or_else(|| Failure::call("PyTorch does not say which stream it uses"))?,
        };
        // SAFETY: it lives as long as this call, by the promise of `add`.
        let plan = unsafe { &*self.plan };
        plan.run(addresses, 0, self.layout.steps, stream)
    }

    /// # Safety
    /// The lock is held; one living object for each buffer.
    #[inline]
    unsafe fn results(&self, api: &Api, objects: &[Ref]) -> QuickCall {
        let mut views = self.views.iter();
        // SAFETY: living objects; results have a reference of their own, which a tuple takes over.
        unsafe {
            if !self.layout.is_sequence {
                let view = views.next();
                let result = Self::result(api, objects[self.layout.returns[0]], view);
                return if result.is_null() { QuickCall::Raised } else { QuickCall::Done(result) };
            }
            let tuple = (api.tuple_new)(self.layout.returns.len() as isize);
            if tuple.is_null() {
                return QuickCall::Raised;
            }
            let results = self.layout.returns.iter().zip(&self.layout.views);
            for (index, (&buffer, &is_view)) in results.enumerate() {
                let view = if is_view { views.next() } else { None };
                let result = Self::result(api, objects[buffer], view);
                if result.is_null() {
                    (api.decref)(tuple);
                    return QuickCall::Raised;
                }
                (api.tuple_set)(tuple, index as isize, result);
            }
            QuickCall::Done(tuple)
        }
    }

    /// A buffer's object, or a view of it; null where PyTorch raises.
    ///
    /// # Safety
    /// The lock is held; living objects.
    #[inline]
    unsafe fn result(api: &Api, object: Ref, view: Option<&(Held, Held)>) -> Ref {
        // SAFETY: living objects; the tuple takes references over that are made for it, and is ours.
        unsafe {
            let Some((function, with)) = view else {
                (api.incref)(object);
                return object;
            };
            let count = (api.tuple_size)(with.get());
            let arguments = (api.tuple_new)(count + 1);
            if arguments.is_null() {
                return arguments;
            }
            (api.incref)(object);
            (api.tuple_set)(arguments, 0, object);
            for at in 0..count {
                let item = (api.tuple_get)(with.get(), at);
                (api.incref)(item);
                (api.tuple_set)(arguments, at + 1, item);
            }
            let result = (api.call)(function.get(), arguments, std::ptr::null_mut());
            (api.decref)(arguments);
            result
        }
    }
}

impl Expected {
    /// What an argument looks like now.
    ///
    /// # Safety
    /// The lock is held; a living object.
    unsafe fn of(api: &Api, object: Ref) -> Option<Expected> {
        // SAFETY: a living object, and what lies in a living tensor.
        unsafe {
            let Some(tensor) = api.tensor(object) else {
                return Held::new(api, object).map(Expected::Value);
            };
            let (shape, stride) = api.layout(tensor)?;
            Some(Expected::Tensor {
                kind: api.kind(tensor)?,
                shape: shape.into(),
                stride: stride.into(),
                is_aligned: api.address(tensor)?.is_multiple_of(ALIGNMENT),
            })
        }
    }

    fn is_tensor(&self) -> bool {
        matches!(self, Expected::Tensor { .. })
    }

    /// The address of an argument that looks the same; 0 for a value.
    ///
    /// # Safety
    /// The lock is held; a living object.
    #[inline]
    unsafe fn fits(&self, api: &Api, object: Ref) -> Option<u64> {
        // SAFETY: a living object, and what lies in a living tensor.
        unsafe {
            match self {
                Expected::Value(known) => {
                    let known = known.get();
                    let is_same =
                        known == object || api.same_type(known, object) && api.equal(known, object);
                    is_same.then_some(0)
                }
                Expected::Tensor { kind, shape, stride, is_aligned } => {
                    let tensor = api.tensor(object)?;
                    let address = api.address(tensor)?;
                    let (found_shape, found_stride) = api.layout(tensor)?;
                    let fits = api.kind(tensor)? == *kind
                        && found_shape == &**shape
                        && found_stride == &**stride
                        && address.is_multiple_of(ALIGNMENT) == *is_aligned;
                    fits.then_some(address)
                }
            }
        }
    }
}

/// The items of a tuple, borrowed from it.
///
/// # Safety
/// A living object; the lock is held.
unsafe fn items(api: &Api, tuple: Ref) -> Result<Vec<Ref>, Failure> {
    // SAFETY: the caller's promise; a count below zero says that this is no tuple.
    let count = unsafe { (api.tuple_size)(tuple) };
    let count = index(count).ok_or_else(|| Failure::call("a tuple was promised"))?;
    // SAFETY: inside the tuple.
    Ok((0..count).map(|at| unsafe { (api.tuple_get)(tuple, at as isize) }).collect())
}
