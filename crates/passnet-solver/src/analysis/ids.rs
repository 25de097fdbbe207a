//! How the parts of a [`super::Body`] name each other.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(usize);

        impl $name {
            pub fn new(index: usize) -> Self {
                $name(index)
            }

            pub fn index(self) -> usize {
                self.0
            }
        }
    };
}

id! {
    /// A loop of [`super::Body::axes`].
    AxisId
}

id! {
    /// A value of [`super::Body::vars`].
    VarId
}
