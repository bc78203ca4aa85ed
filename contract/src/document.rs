//! The one parser of hostile JSON. It keeps every number's own spelling, finds the first repeated key,
//! bounds nesting at 128, and lays the document out as a flat list of nodes over the received bytes: no
//! tree, no copy of a string that holds no escape, and nothing that a key could smuggle in
//! (`serde_json::Value` would drop repeated keys, round numbers and honour private magic keys).
//!
//! Evaluators see [`Value`] alone, so another representation can replace the nodes without touching them.

mod long_number;

use bytes::Bytes;
use jiter::{Jiter, JsonErrorType, Peek};

use crate::pointer::{Pointer, escape};
use long_number::LongNumber;

/// The most containers that may be open at once (event-predicates/v1, section 1)
pub const MAX_DEPTH: usize = 128;

/// Containers with more children than this carry an index
const SMALL: usize = 12;

/// Bytes that are not evidence at all
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedBody {
    /// Empty, or white space alone
    #[error("the body is empty")]
    Empty,
    /// Not RFC 8259 JSON in UTF-8
    #[error("the body is not JSON: byte {at}: {what}")]
    Syntax {
        /// Offset in bytes
        at: usize,
        /// What the parser wanted
        what: String,
    },
    /// Too deep
    #[error("the body nests more than {MAX_DEPTH} containers: byte {at}")]
    Depth {
        /// Offset in bytes
        at: usize,
    },
    /// Longer than 4 GiB, which the nodes cannot address
    #[error("the body is longer than 4294967295 bytes")]
    Size,
}

/// The JSON types
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// a number of any size
    Number,
    /// a string
    String,
    /// an array
    Array,
    /// an object
    Object,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Null,
    False,
    True,
    Number,
    /// A string that stands in the text as it is
    Raw,
    /// A string whose escapes were decoded into the arena
    Decoded,
    Array,
    Object,
    /// An array or object with its children's positions in `index`; an object's are sorted by key
    IndexedArray,
    IndexedObject,
}

/// 16 bytes a value or key. A key is a string node right before its value.
#[derive(Clone, Copy)]
struct Node {
    tag: Tag,
    /// Scalars: where the text starts. Indexed containers: where their run in `index` starts.
    start: u32,
    /// Scalars: bytes of text. Containers: number of children.
    len: u32,
    /// The first node after this value and all that it holds
    end: u32,
}

/// A parsed body
pub struct Document {
    text: Bytes,
    arena: Vec<u8>,
    nodes: Vec<Node>,
    index: Vec<u32>,
    repeated: Option<String>,
}

/// A view of one value in a document
#[derive(Clone, Copy)]
pub struct Value<'a> {
    doc: &'a Document,
    at: u32,
}

/// What a pointer leads to (event-predicates/v1, section 2)
#[derive(Clone, Copy)]
pub enum Resolution<'a> {
    /// A value, `null` included
    Resolved(Value<'a>),
    /// Every container on the way exists, and the last step does not
    Absent,
    /// A step before the last is missing, goes through a scalar, or indexes an array by no index
    Unreachable,
}

struct Open {
    node: u32,
    children: u32,
    object: bool,
}

impl Document {
    /// Parses `text` whole. Memory is at most 20 bytes a byte of text, and time is linear but for sorting
    /// the keys of an object.
    pub fn parse(text: Bytes) -> Result<Self, MalformedBody> {
        if u32::try_from(text.len()).is_err() {
            return Err(MalformedBody::Size);
        }
        if text
            .iter()
            .all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
        {
            return Err(MalformedBody::Empty);
        }
        let mut doc = Self::blank(text);
        let tokens = doc.text.clone();
        match doc.read(&tokens, &[]) {
            Ok(()) => Ok(doc),
            Err(MalformedBody::Syntax { what, .. }) if what == too_long() => {
                let (tokens, long) = long_number::blank(&doc.text);
                let mut doc = Self::blank(doc.text);
                doc.read(&tokens, &long)?;
                Ok(doc)
            }
            Err(why) => Err(why),
        }
    }

    fn blank(text: Bytes) -> Self {
        Self {
            arena: Vec::new(),
            nodes: Vec::with_capacity(text.len() / 16),
            index: Vec::new(),
            repeated: None,
            text,
        }
    }

    /// Reads `text`, whose strings stand where ours do; `long` are the numbers that are blank in it
    fn read(&mut self, text: &[u8], long: &[LongNumber]) -> Result<(), MalformedBody> {
        let mut jiter = Jiter::new(text);
        let mut open: Vec<Open> = Vec::new();
        let mut first_repeat: Option<u32> = None;
        let mut next = jiter.peek().map_err(|e| syntax(&jiter, &e))?;
        'values: loop {
            let node = self.count();
            match next {
                Peek::Array | Peek::Object => {
                    if open.len() == MAX_DEPTH {
                        return Err(MalformedBody::Depth {
                            at: jiter.current_index(),
                        });
                    }
                    let object = next == Peek::Object;
                    let tag = if object { Tag::Object } else { Tag::Array };
                    self.nodes.push(Node {
                        tag,
                        start: 0,
                        len: 0,
                        end: 0,
                    });
                    let mut frame = Open {
                        node,
                        children: 0,
                        object,
                    };
                    if object {
                        let key = jiter
                            .known_object()
                            .map(|k| k.map(|k| place(text, k, &mut self.arena)));
                        if let Some(key) = key.map_err(|e| syntax(&jiter, &e))? {
                            self.nodes.push(key);
                            frame.children = 1;
                            open.push(frame);
                            next = jiter.peek().map_err(|e| syntax(&jiter, &e))?;
                            continue 'values;
                        }
                    } else if let Some(peek) =
                        jiter.known_array().map_err(|e| syntax(&jiter, &e))?
                    {
                        frame.children = 1;
                        open.push(frame);
                        next = peek;
                        continue 'values;
                    }
                    self.close(&frame, &mut first_repeat);
                }
                Peek::String => {
                    let string = jiter.known_str().map(|s| place(text, s, &mut self.arena));
                    let mut string = string.map_err(|e| syntax(&jiter, &e))?;
                    string.end = node + 1;
                    self.nodes.push(string);
                }
                Peek::Null => {
                    jiter.known_null().map_err(|e| syntax(&jiter, &e))?;
                    self.nodes.push(Node {
                        tag: Tag::Null,
                        start: 0,
                        len: 0,
                        end: node + 1,
                    });
                }
                Peek::True | Peek::False => {
                    let value = jiter.known_bool(next).map_err(|e| syntax(&jiter, &e))?;
                    let tag = if value { Tag::True } else { Tag::False };
                    self.nodes.push(Node {
                        tag,
                        start: 0,
                        len: 0,
                        end: node + 1,
                    });
                }
                _ => {
                    let number = jiter
                        .known_number_bytes(next)
                        .map(|n| (offset(text, n), n.len()));
                    let (start, len) = number.map_err(|e| syntax(&jiter, &e))?;
                    let mut start = start.unwrap_or_default();
                    let mut len = len as u32;
                    if let Ok(at) = long.binary_search_by_key(&start, |number| number.last) {
                        let whole = long.get(at).map_or(start, |number| number.start);
                        len += start - whole;
                        start = whole;
                    }
                    self.nodes.push(Node {
                        tag: Tag::Number,
                        start,
                        len,
                        end: node + 1,
                    });
                }
            }
            // The value is whole: step on, closing every container that ends here.
            while let Some(frame) = open.last_mut() {
                if frame.object {
                    let key = jiter
                        .next_key()
                        .map(|k| k.map(|k| place(text, k, &mut self.arena)));
                    if let Some(key) = key.map_err(|e| syntax(&jiter, &e))? {
                        frame.children += 1;
                        self.nodes.push(key);
                        next = jiter.peek().map_err(|e| syntax(&jiter, &e))?;
                        continue 'values;
                    }
                } else if let Some(peek) = jiter.array_step().map_err(|e| syntax(&jiter, &e))? {
                    frame.children += 1;
                    next = peek;
                    continue 'values;
                }
                if let Some(frame) = open.pop() {
                    self.close(&frame, &mut first_repeat);
                }
            }
            break;
        }
        jiter.finish().map_err(|e| syntax(&jiter, &e))?;
        self.repeated = first_repeat.map(|key| self.path_of(key));
        Ok(())
    }

    fn count(&self) -> u32 {
        // A node takes at least one byte of text, and the text is below 4 GiB
        self.nodes.len() as u32
    }

    /// Ends a container: its extent, its index if it is large, and the first key that it repeats.
    fn close(&mut self, frame: &Open, first_repeat: &mut Option<u32>) {
        let end = self.count();
        let small = frame.children as usize <= SMALL;
        let mut start = 0;
        let mut repeat = None;
        if !small || frame.object {
            let run = self.index.len();
            start = run as u32;
            let mut at = frame.node + 1;
            for _ in 0..frame.children {
                self.index.push(at);
                let value = at + u32::from(frame.object);
                at = self.node(value).end;
            }
            let mut keys = self.index.split_off(run);
            if frame.object {
                if small {
                    repeat = self.repeat_among_few(&keys);
                    keys.clear();
                } else {
                    keys.sort_unstable_by(|a, b| self.key_order(*a, *b));
                    repeat = self.repeat_among_sorted(&keys);
                }
            }
            self.index.append(&mut keys);
        }
        let tag = match (frame.object, small) {
            (true, true) => Tag::Object,
            (true, false) => Tag::IndexedObject,
            (false, true) => Tag::Array,
            (false, false) => Tag::IndexedArray,
        };
        if let Some(node) = self.nodes.get_mut(frame.node as usize) {
            *node = Node {
                tag,
                start,
                len: frame.children,
                end,
            };
        }
        if let Some(repeat) = repeat {
            *first_repeat = Some(first_repeat.map_or(repeat, |first| first.min(repeat)));
        }
    }

    /// By length, then bytes, then place: any total order does, and this one rarely reads the bytes.
    fn key_order(&self, a: u32, b: u32) -> std::cmp::Ordering {
        let (left, right) = (self.node(a), self.node(b));
        left.len
            .cmp(&right.len)
            .then_with(|| self.bytes(left).cmp(self.bytes(right)))
            .then(a.cmp(&b))
    }

    /// The place of the first key that stands a second time
    fn repeat_among_few(&self, keys: &[u32]) -> Option<u32> {
        keys.iter().enumerate().find_map(|(n, key)| {
            let node = self.node(*key);
            let before = keys.get(..n)?;
            before
                .iter()
                .map(|other| self.node(*other))
                .any(|other| other.len == node.len && self.bytes(other) == self.bytes(node))
                .then_some(*key)
        })
    }

    fn repeat_among_sorted(&self, keys: &[u32]) -> Option<u32> {
        keys.array_windows::<2>()
            .filter(|[a, b]| self.bytes(self.node(*a)) == self.bytes(self.node(*b)))
            .map(|[_, b]| *b)
            .min()
    }

    fn node(&self, at: u32) -> Node {
        // INVARIANT(nodes): positions come from this document's own nodes
        self.nodes.get(at as usize).copied().unwrap_or(Node {
            tag: Tag::Null,
            start: 0,
            len: 0,
            end: at + 1,
        })
    }

    fn bytes(&self, node: Node) -> &[u8] {
        let from: &[u8] = if node.tag == Tag::Decoded {
            &self.arena
        } else {
            &self.text
        };
        let start = node.start as usize;
        from.get(start..start + node.len as usize)
            .unwrap_or_default()
    }

    /// The pointer of the node at `target`, found by descending from the root.
    fn path_of(&self, target: u32) -> String {
        let mut path = String::new();
        let mut at = Value { doc: self, at: 0 };
        'down: loop {
            if let Some(members) = at.members() {
                for (key, value) in members {
                    if target + 1 == value.at
                        || (target >= value.at && target < self.node(value.at).end)
                    {
                        path.push('/');
                        path.push_str(&escape(key));
                        if target + 1 == value.at {
                            return path;
                        }
                        at = value;
                        continue 'down;
                    }
                }
            } else if let Some(items) = at.items() {
                for (n, item) in items.enumerate() {
                    if target >= item.at && target < self.node(item.at).end {
                        path.push('/');
                        path.push_str(&n.to_string());
                        at = item;
                        continue 'down;
                    }
                }
            }
            return path;
        }
    }

    /// The pointer of the first key that an object repeats, in the order of the text
    pub fn repeated_key(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    /// The received bytes
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The whole document
    pub fn root(&self) -> Value<'_> {
        Value { doc: self, at: 0 }
    }

    /// Follows `pointer` from the root
    pub fn resolve(&self, pointer: &Pointer) -> Resolution<'_> {
        self.root().resolve(pointer)
    }
}

/// What the tokenizer says of an integer of more digits than it takes
fn too_long() -> String {
    JsonErrorType::NumberOutOfRange.to_string()
}

fn syntax(jiter: &Jiter<'_>, error: &jiter::JiterError) -> MalformedBody {
    let _ = jiter;
    // The parser's own texts name JSON tokens alone, never a piece of the body
    MalformedBody::Syntax {
        at: error.index,
        what: error.error_type.to_string(),
    }
}

/// Where `part` stands in `text`, if it does
fn offset(text: &[u8], part: &[u8]) -> Option<u32> {
    let at = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    (at + part.len() <= text.len()).then_some(at as u32)
}

/// A string node: in the text where it holds no escape, else copied to the arena.
fn place(text: &[u8], string: &str, arena: &mut Vec<u8>) -> Node {
    let len = string.len() as u32;
    if let Some(start) = offset(text, string.as_bytes()) {
        return Node {
            tag: Tag::Raw,
            start,
            len,
            end: 0,
        };
    }
    let start = arena.len() as u32;
    arena.extend_from_slice(string.as_bytes());
    Node {
        tag: Tag::Decoded,
        start,
        len,
        end: 0,
    }
}

impl<'a> Value<'a> {
    fn node(self) -> Node {
        self.doc.node(self.at)
    }

    /// The JSON type
    pub fn kind(self) -> Kind {
        match self.node().tag {
            Tag::Null => Kind::Null,
            Tag::False | Tag::True => Kind::Boolean,
            Tag::Number => Kind::Number,
            Tag::Raw | Tag::Decoded => Kind::String,
            Tag::Array | Tag::IndexedArray => Kind::Array,
            Tag::Object | Tag::IndexedObject => Kind::Object,
        }
    }

    /// Whether this is `null`, a boolean, a number or a string
    pub fn is_scalar(self) -> bool {
        !matches!(self.kind(), Kind::Array | Kind::Object)
    }

    /// The text of a string, escapes decoded
    pub fn as_str(self) -> Option<&'a str> {
        // The parser has validated the bytes: reading them again cannot fail
        (self.kind() == Kind::String)
            .then(|| std::str::from_utf8(self.doc.bytes(self.node())).unwrap_or_default())
    }

    /// A number as it is spelled
    pub fn number_text(self) -> Option<&'a str> {
        (self.kind() == Kind::Number)
            .then(|| std::str::from_utf8(self.doc.bytes(self.node())).unwrap_or_default())
    }

    /// A boolean
    pub fn as_bool(self) -> Option<bool> {
        match self.node().tag {
            Tag::True => Some(true),
            Tag::False => Some(false),
            _ => None,
        }
    }

    /// The number of items or members; 0 for scalars
    pub fn len(self) -> usize {
        if self.is_scalar() {
            0
        } else {
            self.node().len as usize
        }
    }

    /// Whether this holds nothing
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The items of an array, in order
    pub fn items(self) -> Option<impl Iterator<Item = Value<'a>>> {
        (self.kind() == Kind::Array).then(|| {
            let doc = self.doc;
            let mut at = self.at + 1;
            (0..self.node().len).map(move |_| {
                let item = Value { doc, at };
                at = doc.node(at).end;
                item
            })
        })
    }

    /// The members of an object, in the order of the text
    pub fn members(self) -> Option<impl Iterator<Item = (&'a str, Value<'a>)>> {
        (self.kind() == Kind::Object).then(|| {
            let doc = self.doc;
            let mut at = self.at + 1;
            (0..self.node().len).map(move |_| {
                let key = Value { doc, at };
                let value = Value { doc, at: at + 1 };
                at = doc.node(at + 1).end;
                (key.as_str().unwrap_or_default(), value)
            })
        })
    }

    /// The item at `index`
    pub fn item(self, index: usize) -> Option<Value<'a>> {
        let node = self.node();
        if index >= node.len as usize {
            return None;
        }
        match node.tag {
            Tag::IndexedArray => {
                let at = self.doc.index.get(node.start as usize + index)?;
                Some(Value {
                    doc: self.doc,
                    at: *at,
                })
            }
            Tag::Array => self.items()?.nth(index),
            _ => None,
        }
    }

    /// The member named `key`; the first of them where the document repeats it
    pub fn member(self, key: &str) -> Option<Value<'a>> {
        let node = self.node();
        let doc = self.doc;
        match node.tag {
            Tag::Object => {
                let mut at = self.at + 1;
                for _ in 0..node.len {
                    let name = doc.node(at);
                    if name.len as usize == key.len() && doc.bytes(name) == key.as_bytes() {
                        return Some(Value { doc, at: at + 1 });
                    }
                    at = doc.node(at + 1).end;
                }
                None
            }
            Tag::IndexedObject => {
                let start = node.start as usize;
                let keys = doc.index.get(start..start + node.len as usize)?;
                let found = keys.partition_point(|at| {
                    let name = doc.node(*at);
                    (name.len as usize)
                        .cmp(&key.len())
                        .then_with(|| doc.bytes(name).cmp(key.as_bytes()))
                        == std::cmp::Ordering::Less
                });
                let at = *keys.get(found)?;
                (doc.bytes(doc.node(at)) == key.as_bytes()).then_some(Value { doc, at: at + 1 })
            }
            _ => None,
        }
    }

    /// This value as a document of its own: numbers as they are spelled, repeated keys repeated
    pub fn to_document(self) -> Result<Document, MalformedBody> {
        let mut text = Vec::new();
        self.write(&mut text);
        Document::parse(text.into())
    }

    /// As JSON. Nesting is bounded by the parser.
    fn write(self, out: &mut Vec<u8>) {
        let string = |text: &str, out: &mut Vec<u8>| {
            out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
        };
        match self.kind() {
            Kind::Null => out.extend_from_slice(b"null"),
            Kind::Boolean if self.as_bool() == Some(true) => out.extend_from_slice(b"true"),
            Kind::Boolean => out.extend_from_slice(b"false"),
            Kind::Number => out.extend_from_slice(self.doc.bytes(self.node())),
            Kind::String => string(self.as_str().unwrap_or_default(), out),
            Kind::Array => {
                out.push(b'[');
                for (n, item) in self.items().into_iter().flatten().enumerate() {
                    if n > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Kind::Object => {
                out.push(b'{');
                for (n, (key, value)) in self.members().into_iter().flatten().enumerate() {
                    if n > 0 {
                        out.push(b',');
                    }
                    string(key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// Follows `pointer` from this value
    pub fn resolve(self, pointer: &Pointer) -> Resolution<'a> {
        let mut at = self;
        let mut tokens = pointer.tokens().iter();
        while let Some(token) = tokens.next() {
            let next = match at.kind() {
                Kind::Object => at.member(token.text()),
                Kind::Array => match token.index() {
                    Some(index) => at.item(index),
                    None => return Resolution::Unreachable,
                },
                _ => return Resolution::Unreachable,
            };
            match next {
                Some(value) => at = value,
                None if tokens.as_slice().is_empty() => return Resolution::Absent,
                None => return Resolution::Unreachable,
            }
        }
        Resolution::Resolved(at)
    }
}

#[cfg(test)]
mod tests;
