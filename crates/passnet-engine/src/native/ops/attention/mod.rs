//! Attention: scaled dot products, and the multi-head layer built on them.

mod multi_head;
mod native;
mod scaled_dot_product;

pub use multi_head::{MultiHead, multi_head_attention};
pub use native::{SelfAttention, native_multi_head_attention};
pub use scaled_dot_product::{Attention, attention_with_dropout, scaled_dot_product_attention};
