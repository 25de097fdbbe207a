//! What outlives a call. A wrapper is evaluated on the file as it is written, so nothing that it stores at the top level
//! is there in the next call; and a tensor that belongs to the call must not be stored there at all.

use super::interp::{Interp, Result};
use super::tensor::Tensor;
use super::value::{FrameId, Holder, ObjectId, Value};
use super::{Init, View};
use passnet_graph::syntax::Ranged;
use rustc_hash::FxHashSet;
use std::rc::Rc;

impl<'a> Interp<'a> {
    /// Remembers where the last value was put into a holder.
    pub(super) fn note_store(&mut self, holder: Holder, at: &impl Ranged) {
        let module = self.module();
        self.stores.insert(holder, (module, at.range()));
    }

    /// Refuses a wrapper that leaves an argument, or what it returns, in a holder that outlives the call.
    pub(super) fn check_kept(&self, returns: &[View]) -> Result<()> {
        let mut names: Vec<_> = self.globals.keys().collect();
        names.sort();
        for (module, name) in names {
            let key = (*module, name.clone());
            let mut walk = Walk { waiting: Vec::new(), seen: FxHashSet::default() };
            let holder = Holder::Global(*module, name.clone());
            walk.waiting.push((self.globals[&key].clone(), holder));
            while let Some((value, holder)) = walk.waiting.pop() {
                if let Value::Tensor(tensor) = &value {
                    self.check_tensor(name, tensor, &holder, returns)?;
                }
                self.reach(&mut walk, value, holder);
            }
        }
        Ok(())
    }

    fn check_tensor(
        &self,
        name: &str,
        tensor: &Tensor,
        holder: &Holder,
        returns: &[View],
    ) -> Result<()> {
        let spec = &self.buffers[tensor.buffer];
        let what = if matches!(spec.init, Init::Input(_)) {
            format!("the argument `{}`", spec.name)
        } else if returns.iter().any(|view| view.buffer == tensor.buffer) {
            "a result".to_string()
        } else {
            return Ok(());
        };
        // What the file itself makes at its top level is made anew for every call.
        let Some((module, range)) = self.stores.get(holder) else { return Ok(()) };
        let message = format!("`{name}` keeps {what} beyond the call");
        Err(self
            .modules
            .source(*module)
            .at(*range, message)
            .with_hint("nothing is kept between calls: compute it in every call"))
    }

    /// What a value holds.
    fn reach(&self, walk: &mut Walk<'a>, value: Value<'a>, holder: Holder) {
        // What was written out with its content is told by where it was put.
        let inside =
            |own: Holder| if self.stores.contains_key(&own) { own } else { holder.clone() };
        match value {
            Value::Tuple(items) => {
                walk.waiting.extend(items.iter().map(|item| (item.clone(), holder.clone())));
            }
            Value::List(id) if walk.seen.insert(Holder::list(id)) => {
                let items = self.lists[id.0].iter().cloned();
                let holder = inside(Holder::list(id));
                walk.waiting.extend(items.map(|item| (item, holder.clone())));
            }
            Value::Dict(id) if walk.seen.insert(Holder::dict(id)) => {
                let items = self.dicts[id.0].iter().flat_map(|(key, value)| [key, value]).cloned();
                let holder = inside(Holder::dict(id));
                walk.waiting.extend(items.map(|item| (item, holder.clone())));
            }
            Value::Object(ObjectId(id)) if walk.seen.insert(Holder::Object(id)) => {
                let items = self.objects[id].fields.iter().map(|(_, value)| value.clone());
                let holder = inside(Holder::Object(id));
                walk.waiting.extend(items.map(|item| (item, holder.clone())));
            }
            Value::Descriptor(descriptor) => {
                walk.waiting.push((Value::Tensor(Rc::clone(&descriptor.tensor)), holder));
            }
            Value::Method(inner, _) | Value::Bound(_, inner) | Value::Launcher(_, inner) => {
                walk.waiting.push((Rc::unwrap_or_clone(inner), holder));
            }
            Value::Function(_, Some(frame)) | Value::Lambda(_, frame) => {
                self.reach_frame(walk, frame, &holder);
            }
            _ => {}
        }
    }

    /// The variables that a function sees around it.
    fn reach_frame(&self, walk: &mut Walk<'a>, frame: FrameId, holder: &Holder) {
        let mut next = Some(frame);
        while let Some(frame) = next {
            if !walk.seen.insert(Holder::Frame(frame.0)) {
                return;
            }
            let values = self.frame_values(frame);
            walk.waiting.extend(values.into_iter().map(|value| (value, holder.clone())));
            next = self.frame_parent(frame);
        }
    }
}

struct Walk<'a> {
    /// Values with the holder that holds them.
    waiting: Vec<(Value<'a>, Holder)>,
    seen: FxHashSet<Holder>,
}
