//! Text for people: aligned columns and grouped digits.

use std::fmt;

/// A header and rows of as many cells, each column as wide as its widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    /// Column titles between commas: `words` start at the left, `numbers` end
    /// at the right.
    pub fn new(words: &str, numbers: &str) -> Self {
        let words: Vec<_> = words.split(',').collect();
        let mut table = Table {
            rows: vec![Vec::new()],
            left: words.len(),
        };
        table.header(&words);
        table.header(&Vec::from_iter(numbers.split(',')));
        table
    }

    /// More columns, ending at the right.
    pub fn header(&mut self, titles: &[&str]) {
        self.rows[0].extend(titles.iter().map(|&title| title.to_owned()));
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let width = |row: &Vec<String>| row[column].chars().count();
                self.rows.iter().map(width).max().unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if column < self.left {
                    line += &format!("  {cell:<width$}");
                } else {
                    line += &format!("  {cell:>width$}");
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// 248320 as 248,320.
pub fn grouped(n: impl fmt::Display) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        let left = digits.len() - i;
        if i > 0 && left.is_multiple_of(3) && text != "-" {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
