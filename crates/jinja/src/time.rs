//! The time that templates can print, and C's `strftime` for it.

/// A date and a time in the user's time zone.
///
/// The caller reads the clock, because not every platform has one that this crate could read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Year of the Gregorian calendar.
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 60.
    pub second: u32,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl LocalTime {
    /// The time on a clock that is `offset` seconds ahead of UTC, `seconds` after the start of 1970 (UTC).
    ///
    /// ```
    /// use chaski_jinja::LocalTime;
    ///
    /// let time = LocalTime::from_unix(951_782_400, 3600);
    /// assert_eq!(time.strftime("%F %T"), "2000-02-29 01:00:00");
    /// ```
    ///
    /// # Source
    ///
    /// H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    pub fn from_unix(seconds: i64, offset: i32) -> LocalTime {
        let seconds = seconds.saturating_add(i64::from(offset));
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400) as u32);
        // Years begin on 1 March here, so that the leap day comes last.
        let days = days.saturating_add(719_468);
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = (of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100)) as u32;
        let month_from_march = (5 * of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        LocalTime {
            year: (year_of_era + era * 400 + i64::from(month <= 2)) as i32,
            month,
            day: of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    /// Formats the time like C's `strftime` in the C locale; unknown conversions are kept unchanged.
    pub fn strftime(&self, format: &str) -> String {
        let mut text = String::with_capacity(format.len() + 16);
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            match chars.next() {
                // glibc and Python: no padding.
                Some('-') => match chars.next() {
                    Some(c) => {
                        let padded = self.convert(c);
                        let short = padded.trim_start_matches(['0', ' ']);
                        text.push_str(if short.is_empty() { "0" } else { short });
                    }
                    None => text.push_str("%-"),
                },
                Some(c) => text.push_str(&self.convert(c)),
                None => text.push('%'),
            }
        }
        text
    }

    fn convert(&self, conversion: char) -> String {
        let &LocalTime { year, month, day, hour, minute, second } = self;
        let month_name = MONTHS[(month.clamp(1, 12) - 1) as usize];
        let day_name = DAYS[self.weekday() as usize];
        let hour12 = (hour + 11) % 12 + 1;
        match conversion {
            'a' => day_name[..3].to_owned(),
            'A' => day_name.to_owned(),
            'b' | 'h' => month_name[..3].to_owned(),
            'B' => month_name.to_owned(),
            'c' => self.strftime("%a %b %e %H:%M:%S %Y"),
            'C' => format!("{:02}", year.div_euclid(100)),
            'd' => format!("{day:02}"),
            'D' | 'x' => self.strftime("%m/%d/%y"),
            'e' => format!("{day:2}"),
            'F' => self.strftime("%Y-%m-%d"),
            'H' => format!("{hour:02}"),
            'I' => format!("{hour12:02}"),
            'j' => format!("{:03}", self.day_of_year()),
            'k' => format!("{hour:2}"),
            'l' => format!("{hour12:2}"),
            'm' => format!("{month:02}"),
            'M' => format!("{minute:02}"),
            'n' => "\n".to_owned(),
            'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            'r' => self.strftime("%I:%M:%S %p"),
            'R' => self.strftime("%H:%M"),
            'S' => format!("{second:02}"),
            't' => "\t".to_owned(),
            'T' | 'X' => self.strftime("%H:%M:%S"),
            'u' => format!("{}", (self.weekday() + 6) % 7 + 1),
            'w' => format!("{}", self.weekday()),
            'y' => format!("{:02}", year.rem_euclid(100)),
            'Y' => format!("{year}"),
            '%' => "%".to_owned(),
            other => format!("%{other}"),
        }
    }

    /// The day of the year, 1 to 366.
    fn day_of_year(&self) -> u32 {
        const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let is_leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        BEFORE[(self.month.clamp(1, 12) - 1) as usize] + self.day + u32::from(is_leap && self.month > 2)
    }

    /// The day of the week; 0 is Sunday.
    fn weekday(&self) -> u32 {
        let year = i64::from(self.year) - 1;
        let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        (days + i64::from(self.day_of_year())).rem_euclid(7) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strftime_prints_what_c_prints() {
        let time = LocalTime { year: 2026, month: 11, day: 5, hour: 12, minute: 30, second: 45 };
        for (format, expected) in [
            ("%d %b %Y", "05 Nov 2026"),
            ("%B %d, %Y", "November 05, 2026"),
            ("%A, %a", "Thursday, Thu"),
            ("%Y-%m-%d %H:%M:%S", "2026-11-05 12:30:45"),
            ("%I:%M %p %j", "12:30 PM 309"),
            ("%-d/%-m %e%%", "5/11  5%"),
            ("%y %u %w %Q %", "26 4 4 %Q %"),
        ] {
            assert_eq!(time.strftime(format), expected, "{format}");
        }
    }

    #[test]
    fn from_unix_knows_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 Thu"),
            (-1, "1969-12-31 23:59:59 Wed"),
            (1_709_164_800, "2024-02-29 00:00:00 Thu"),
            (1_709_251_199, "2024-02-29 23:59:59 Thu"),
            (4_107_542_400, "2100-03-01 00:00:00 Mon"),
        ] {
            assert_eq!(LocalTime::from_unix(seconds, 0).strftime("%F %T %a"), expected);
        }
        assert_eq!(LocalTime::from_unix(0, -3600).strftime("%F %R"), "1969-12-31 23:00");
    }
}
