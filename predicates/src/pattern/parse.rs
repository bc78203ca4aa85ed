//! Reads a pattern into a tree and holds it to the bounds of counts, their product and the cost.

/// A count stands for at most this many repetitions
const MAX_COUNT: u32 = 100;
/// The most that nested counts may multiply to
const MAX_PRODUCT: u32 = 1_000;
/// The most that a pattern may cost
const MAX_COST: u64 = 10_000;
/// The most bytes of a pattern
const MAX_BYTES: usize = 1_024;

const LAST: u32 = 0x10_FFFF;
const PUNCTUATION: &str = "^$\\.*+?()[]{}|/";

/// Sorted code point ranges, both ends included
pub(crate) type Ranges = Vec<(u32, u32)>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Assertion {
    Start,
    End,
    Boundary,
    Inside,
}

#[derive(Debug)]
pub(crate) enum Node {
    Set(Ranges),
    Assert(Assertion),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat {
        item: Box<Node>,
        min: u32,
        max: Option<u32>,
    },
}

/// Why a text is no pattern of the subset
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPattern {
    /// Too long
    #[error("longer than {MAX_BYTES} bytes")]
    Bytes,
    /// It ends within a group, class, escape or count
    #[error("it ends early")]
    EndsEarly,
    /// `} ] * + ? {` or `)` where none can stand
    #[error("a bare `{0}`: escape it")]
    Bare(char),
    /// An escape outside of the subset
    #[error("the escape `\\{0}` is not in the portable subset")]
    Escape(char),
    /// Look-around, flags or a named group
    #[error("a group is `( )` or `(?: )`")]
    Group,
    /// A quantifier on `^ $ \b \B`
    #[error("an assertion cannot be repeated")]
    QuantifiedAssertion,
    /// A count that is padded, reversed or too large
    #[error("a count is `{{n}}`, `{{n,}}` or `{{n,m}}`, unpadded and at most {MAX_COUNT}")]
    Count,
    /// Nested counts multiply too far
    #[error("nested counts multiply to more than {MAX_PRODUCT}")]
    Product,
    /// Too costly
    #[error("it costs more than {MAX_COST}")]
    Cost,
    /// A class that engines read differently
    #[error("in a class, escape brackets, and let a bare hyphen stand first, last or in a range")]
    Class,
    /// The engine refused what the subset allows: a fault of ours
    #[error("the engine cannot compile it")]
    Engine,
}

/// What a node costs, and the largest product of counts inside it
#[derive(Clone, Copy)]
struct Weight {
    cost: u64,
    product: u32,
}

struct Parsed {
    node: Node,
    weight: Weight,
}

/// Checks `text` against every bound
pub(crate) fn parse(text: &str) -> Result<Node, NotAPattern> {
    if text.len() > MAX_BYTES {
        return Err(NotAPattern::Bytes);
    }
    let mut reader = Reader {
        chars: text.chars().collect(),
        at: 0,
    };
    let parsed = reader.alternation()?;
    if let Some(rest) = reader.peek() {
        return Err(NotAPattern::Bare(rest));
    }
    if parsed.weight.cost > MAX_COST {
        return Err(NotAPattern::Cost);
    }
    Ok(parsed.node)
}

fn merge(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut out: Ranges = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match out.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out
}

fn negate(ranges: Ranges) -> Ranges {
    let mut out = Vec::new();
    let mut next = 0;
    for (low, high) in merge(ranges) {
        if low > next {
            out.push((next, low - 1));
        }
        next = high + 1;
    }
    if next <= LAST {
        out.push((next, LAST));
    }
    out
}

/// `\d \w \s` and their negations, ASCII alone
fn shorthand(letter: char) -> Option<Ranges> {
    let ranges = match letter.to_ascii_lowercase() {
        'd' => vec![(48, 57)],
        'w' => vec![(48, 57), (65, 90), (95, 95), (97, 122)],
        's' => vec![(9, 13), (32, 32)],
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() {
        negate(ranges)
    } else {
        ranges
    })
}

fn control(letter: char) -> Option<u32> {
    match letter {
        't' => Some(9),
        'n' => Some(10),
        'r' => Some(13),
        _ => None,
    }
}

fn class(ranges: Ranges) -> Parsed {
    let ranges = merge(ranges);
    let ascii = ranges.iter().all(|(_, high)| *high < 0x80);
    let cost = if ascii {
        1
    } else {
        16 + 4 * ranges.len() as u64
    };
    Parsed {
        node: Node::Set(ranges),
        weight: Weight { cost, product: 1 },
    }
}

fn character(c: u32) -> Parsed {
    let cost = if c < 0x80 { 1 } else { 4 };
    Parsed {
        node: Node::Set(vec![(c, c)]),
        weight: Weight { cost, product: 1 },
    }
}

fn assertion(assertion: Assertion) -> Parsed {
    Parsed {
        node: Node::Assert(assertion),
        weight: Weight {
            cost: 1,
            product: 1,
        },
    }
}

fn join(parts: Vec<Parsed>, node: impl FnOnce(Vec<Node>) -> Node) -> Parsed {
    let weight = parts.iter().fold(
        Weight {
            cost: 0,
            product: 1,
        },
        |sum, part| Weight {
            cost: sum.cost.saturating_add(part.weight.cost),
            product: sum.product.max(part.weight.product),
        },
    );
    Parsed {
        node: node(parts.into_iter().map(|part| part.node).collect()),
        weight,
    }
}

/// `{n,}` counts as n, `* + ?` as 1, another count by its upper end; zero counts as 1, so that it never
/// hides what stands below it
fn repeat(item: Parsed, min: u32, max: Option<u32>) -> Result<Parsed, NotAPattern> {
    let factor = max.unwrap_or(min).max(1);
    let product = item.weight.product.saturating_mul(factor);
    if product > MAX_PRODUCT {
        return Err(NotAPattern::Product);
    }
    Ok(Parsed {
        node: Node::Repeat {
            item: Box::new(item.node),
            min,
            max,
        },
        weight: Weight {
            cost: item.weight.cost.saturating_mul(u64::from(factor)),
            product,
        },
    })
}

enum ClassItem {
    One(u32),
    Many(Ranges),
}

/// Recursion is bounded by the 1,024 bytes of a pattern
struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Result<char, NotAPattern> {
        let c = self.peek().ok_or(NotAPattern::EndsEarly)?;
        self.at += 1;
        Ok(c)
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn alternation(&mut self) -> Result<Parsed, NotAPattern> {
        let mut branches = vec![self.branch()?];
        while self.take('|') {
            branches.push(self.branch()?);
        }
        Ok(join(branches, Node::Alternate))
    }

    fn branch(&mut self) -> Result<Parsed, NotAPattern> {
        let mut items = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let atom = self.atom()?;
            items.push(match self.quantifier()? {
                None => atom,
                Some(_) if matches!(atom.node, Node::Assert(_)) => {
                    return Err(NotAPattern::QuantifiedAssertion);
                }
                Some((min, max)) => repeat(atom, min, max)?,
            });
        }
        Ok(join(items, Node::Concat))
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, NotAPattern> {
        let found = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.at += 1;
                let found = self.counts()?;
                self.take('?');
                return Ok(Some(found));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        self.take('?');
        Ok(Some(found))
    }

    fn counts(&mut self) -> Result<(u32, Option<u32>), NotAPattern> {
        let min = self.count()?;
        let max = if self.take(',') {
            if self.peek() == Some('}') {
                None
            } else {
                Some(self.count()?)
            }
        } else {
            Some(min)
        };
        if !self.take('}') || max.is_some_and(|max| max < min) {
            return Err(NotAPattern::Count);
        }
        Ok((min, max))
    }

    fn count(&mut self) -> Result<u32, NotAPattern> {
        let mut value = 0;
        let mut digits = 0;
        let mut first = 0;
        while let Some(digit) = self.peek().and_then(|c| c.is_ascii_digit().then_some(c)) {
            self.at += 1;
            let digit = digit.to_digit(10).unwrap_or(0);
            if digits == 0 {
                first = digit;
            }
            digits += 1;
            value = value * 10 + digit;
            if value > MAX_COUNT {
                return Err(NotAPattern::Count);
            }
        }
        if digits == 0 || (digits > 1 && first == 0) {
            return Err(NotAPattern::Count);
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<Parsed, NotAPattern> {
        match self.next()? {
            '^' => Ok(assertion(Assertion::Start)),
            '$' => Ok(assertion(Assertion::End)),
            '.' => Ok(class(negate(vec![(10, 10)]))),
            '[' => self.class(),
            '(' => {
                if self.take('?') && !self.take(':') {
                    return Err(NotAPattern::Group);
                }
                let inner = self.alternation()?;
                if !self.take(')') {
                    return Err(NotAPattern::EndsEarly);
                }
                // A group of one assertion may be repeated, an assertion may not
                Ok(Parsed {
                    node: Node::Concat(vec![inner.node]),
                    weight: inner.weight,
                })
            }
            '\\' => self.escape(),
            bare @ ('*' | '+' | '?' | '{' | '}' | ']' | ')') => Err(NotAPattern::Bare(bare)),
            other => Ok(character(u32::from(other))),
        }
    }

    fn escape(&mut self) -> Result<Parsed, NotAPattern> {
        let c = self.next()?;
        match c {
            'b' => Ok(assertion(Assertion::Boundary)),
            'B' => Ok(assertion(Assertion::Inside)),
            _ => match shorthand(c) {
                Some(ranges) => Ok(class(ranges)),
                None => self::literal(c, PUNCTUATION).map(character),
            },
        }
    }

    fn class(&mut self) -> Result<Parsed, NotAPattern> {
        let negated = self.take('^');
        let mut ranges = Vec::new();
        let mut first = true;
        while first || self.peek() != Some(']') {
            let item = self.class_item(first)?;
            first = false;
            let low = match item {
                ClassItem::Many(mut many) => {
                    ranges.append(&mut many);
                    continue;
                }
                ClassItem::One(low) => low,
            };
            if self.peek() != Some('-') || self.chars.get(self.at + 1) == Some(&']') {
                ranges.push((low, low));
                continue;
            }
            self.at += 1;
            if self.peek() == Some('-') {
                return Err(NotAPattern::Class);
            }
            match self.class_item(false)? {
                ClassItem::One(high) if high >= low => ranges.push((low, high)),
                _ => return Err(NotAPattern::Class),
            }
        }
        self.at += 1;
        Ok(class(if negated { negate(ranges) } else { ranges }))
    }

    fn class_item(&mut self, first: bool) -> Result<ClassItem, NotAPattern> {
        let c = self.next()?;
        match c {
            ']' | '[' => Err(NotAPattern::Class),
            '-' => {
                // A bare hyphen is first or last; a range was read by the caller
                let last = self.peek() == Some(']');
                if (!first && !last) || self.peek() == Some('-') {
                    return Err(NotAPattern::Class);
                }
                Ok(ClassItem::One(u32::from('-')))
            }
            '&' | '~' if self.peek() == Some(c) => Err(NotAPattern::Class),
            '\\' => {
                let c = self.next()?;
                match shorthand(c) {
                    Some(ranges) => Ok(ClassItem::Many(ranges)),
                    None if c == '-' => Ok(ClassItem::One(u32::from('-'))),
                    None => literal(c, PUNCTUATION).map(ClassItem::One),
                }
            }
            other => Ok(ClassItem::One(u32::from(other))),
        }
    }
}

/// The code point that an escaped character stands for
fn literal(c: char, allowed: &str) -> Result<u32, NotAPattern> {
    match control(c) {
        Some(control) => Ok(control),
        None if allowed.contains(c) => Ok(u32::from(c)),
        None => Err(NotAPattern::Escape(c)),
    }
}
