//! Attention: scaled dot products, and the multi-head layer built on them.

mod multi_head;
mod scaled_dot_product;

pub use multi_head::{MultiHead, multi_head_attention};
pub use scaled_dot_product::{Attention, scaled_dot_product_attention};
