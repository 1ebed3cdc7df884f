// Types, literals and texts of values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tablet/values/fixed_text.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

std::string Parsed(const std::string& text, const SqlType& type) {
  Result<Value> value = ParseValue(text, type);
  return value.ok() ? ToText(*value) : "error: " + value.status().message();
}

SqlType Of(TypeId id) { return SqlType::Of(id); }

TEST(TabletValue, TypeNames) {
  EXPECT_EQ(Of(TypeId::kBoolean).ToString(), "BOOLEAN");
  EXPECT_EQ(Of(TypeId::kSmallint).ToString(), "SMALLINT");
  EXPECT_EQ(Of(TypeId::kInteger).ToString(), "INTEGER");
  EXPECT_EQ(Of(TypeId::kBigint).ToString(), "BIGINT");
  EXPECT_EQ(Of(TypeId::kReal).ToString(), "REAL");
  EXPECT_EQ(Of(TypeId::kDouble).ToString(), "DOUBLE PRECISION");
  EXPECT_EQ(SqlType::Decimal(12, 2).ToString(), "DECIMAL(12,2)");
  EXPECT_EQ(Of(TypeId::kDate).ToString(), "DATE");
  EXPECT_EQ(Of(TypeId::kTimestamp).ToString(), "TIMESTAMP");
  EXPECT_EQ(SqlType::Text().ToString(), "TEXT");
  EXPECT_EQ(SqlType::Text(10).ToString(), "VARCHAR(10)");
}

TEST(TabletValue, Booleans) {
  for (const char* text : {"t", "true", "TRUE", "tr", "yes", "Y", "on", "1", " true "}) {
    EXPECT_EQ(Parsed(text, Of(TypeId::kBoolean)), "true") << text;
  }
  for (const char* text : {"f", "false", "False", "no", "n", "off", "of", "0"}) {
    EXPECT_EQ(Parsed(text, Of(TypeId::kBoolean)), "false") << text;
  }
  for (const char* text : {"", "o", "2", "truex", "yess", "10"}) {
    EXPECT_EQ(Parsed(text, Of(TypeId::kBoolean)),
              "error: invalid input syntax for type boolean: \"" + std::string(text) + "\"");
  }
}

TEST(TabletValue, Integers) {
  EXPECT_EQ(Parsed("32767", Of(TypeId::kSmallint)), "32767");
  EXPECT_EQ(Parsed("-32768", Of(TypeId::kSmallint)), "-32768");
  EXPECT_EQ(Parsed("32768", Of(TypeId::kSmallint)), "error: value \"32768\" is out of range for type smallint");
  EXPECT_EQ(Parsed("  +42\t", Of(TypeId::kInteger)), "42");
  EXPECT_EQ(Parsed("2147483648", Of(TypeId::kInteger)), "error: value \"2147483648\" is out of range for type integer");
  EXPECT_EQ(Parsed("-2147483648", Of(TypeId::kInteger)), "-2147483648");
  EXPECT_EQ(Parsed("9223372036854775807", Of(TypeId::kBigint)), "9223372036854775807");
  EXPECT_EQ(Parsed("-9223372036854775808", Of(TypeId::kBigint)), "-9223372036854775808");
  EXPECT_EQ(Parsed("00000000000000000000000000007", Of(TypeId::kBigint)), "7");
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "99999999999999999999999999"}) {
    EXPECT_EQ(Parsed(text, Of(TypeId::kBigint)),
              "error: value \"" + std::string(text) + "\" is out of range for type bigint");
  }
  for (const char* text : {"", "-", "+", "abc", "1.0", "1e3", "1 2", "0x10", "--1", "12345678901234567890x"}) {
    EXPECT_EQ(Parsed(text, Of(TypeId::kInteger)),
              "error: invalid input syntax for type integer: \"" + std::string(text) + "\"");
  }
}

TEST(TabletValue, Decimals) {
  const SqlType money = SqlType::Decimal(5, 2);
  EXPECT_EQ(Parsed("12.5", money), "12.50");
  EXPECT_EQ(Parsed("-0.05", money), "-0.05");
  EXPECT_EQ(Parsed(".5", money), "0.50");
  EXPECT_EQ(Parsed("7.", money), "7.00");
  EXPECT_EQ(Parsed("0", money), "0.00");
  EXPECT_EQ(Parsed("1.005", money), "1.01") << "half away from zero";
  EXPECT_EQ(Parsed("-1.005", money), "-1.01");
  EXPECT_EQ(Parsed("1.00499999999999999999999999999999999999999999", money), "1.00");
  EXPECT_EQ(Parsed("999.99", money), "999.99");
  EXPECT_EQ(Parsed("999.994", money), "999.99");
  EXPECT_EQ(Parsed("999.995", money), "error: value \"999.995\" is out of range for type decimal(5,2)");
  EXPECT_EQ(Parsed("1000", money), "error: value \"1000\" is out of range for type decimal(5,2)");
  EXPECT_EQ(Parsed("1.25e2", money), "125.00");
  EXPECT_EQ(Parsed("12500e-2", money), "125.00");
  EXPECT_EQ(Parsed("1e-3", money), "0.00");
  EXPECT_EQ(Parsed("5e-3", money), "0.01");
  EXPECT_EQ(Parsed("1e1000000000000000000000", money),
            "error: value \"1e1000000000000000000000\" is out of range for type decimal(5,2)");
  EXPECT_EQ(Parsed("0e1000000000000000000000", money), "0.00");
  EXPECT_EQ(Parsed("1e-1000000000000000000000", money), "0.00");
  for (const char* text : {"", ".", "-", "1.2.3", "1e", "e5", "NaN", "1,5"}) {
    EXPECT_EQ(Parsed(text, money), "error: invalid input syntax for type decimal(5,2): \"" + std::string(text) + "\"");
  }
  EXPECT_EQ(Parsed("99999999999999999999999999999999999999", SqlType::Decimal(38, 0)),
            "99999999999999999999999999999999999999");
  EXPECT_EQ(Parsed("-0.99999999999999999999999999999999999999", SqlType::Decimal(38, 38)),
            "-0.99999999999999999999999999999999999999");
  EXPECT_EQ(Parsed("99999999999999999999999999999999999999.5", SqlType::Decimal(38, 0)).substr(0, 5), "error");
  EXPECT_EQ(Parsed("100000000000000000000000000000000000000", SqlType::Decimal(38, 0)).substr(0, 5), "error");
  EXPECT_EQ(Parsed("0.0000000001", SqlType::Decimal(30, 10)), "0.0000000001");
  EXPECT_EQ(Parsed("123456789012345678", SqlType::Decimal(18, 0)), "123456789012345678");
  EXPECT_EQ(Parsed("1234567890123456789", SqlType::Decimal(18, 0)).substr(0, 5), "error");
}

TEST(TabletValue, Floats) {
  const SqlType d = Of(TypeId::kDouble), r = Of(TypeId::kReal);
  EXPECT_EQ(Parsed("1.5", d), "1.5");
  EXPECT_EQ(Parsed("+.5", d), "0.5");
  EXPECT_EQ(Parsed("1", d), "1");
  EXPECT_EQ(Parsed("0.1", d), "0.1");
  EXPECT_EQ(Parsed("0.1", r), "0.1");
  EXPECT_EQ(Parsed("1e6", d), "1000000");
  EXPECT_EQ(Parsed("123456789012345", d), "123456789012345");
  EXPECT_EQ(Parsed("1e15", d), "1e+15");
  EXPECT_EQ(Parsed("0.0001", d), "0.0001");
  EXPECT_EQ(Parsed("0.00001", d), "1e-05");
  EXPECT_EQ(Parsed("-0", d), "-0");
  EXPECT_EQ(Parsed("16777217", r), "1.6777216e+07");
  EXPECT_EQ(Parsed("5e-324", d), "5e-324");
  EXPECT_EQ(Parsed("1.7976931348623157e308", d), "1.7976931348623157e+308");
  for (const char* text : {"inf", "Infinity", "+INF", " infinity "}) EXPECT_EQ(Parsed(text, d), "Infinity") << text;
  EXPECT_EQ(Parsed("-inf", r), "-Infinity");
  EXPECT_EQ(Parsed("nan", d), "NaN");
  EXPECT_EQ(Parsed("NaN", r), "NaN");
  EXPECT_EQ(Parsed("1e400", d), "error: value \"1e400\" is out of range for type double precision");
  EXPECT_EQ(Parsed("1e39", r), "error: value \"1e39\" is out of range for type real");
  for (const char* text : {"", "abc", "1.5x", "nan(1)", "0x1p3", "--1", "1e", "infi"}) {
    EXPECT_EQ(Parsed(text, d), "error: invalid input syntax for type double precision: \"" + std::string(text) + "\"");
  }
  // The shortest text reads back as the same number.
  for (const double v : {0.1 + 0.2, 1.0 / 3, 2e-308, 123456.789e10, -1e22}) {
    const Result<Value> back = ParseValue(ToText(Value::Float(d, v)), d);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->f64, v);
  }
}

TEST(TabletValue, Dates) {
  const SqlType date = Of(TypeId::kDate);
  for (const char* text : {"1970-01-01", "0001-01-01", "9999-12-31", "2000-02-29", "2024-02-29", "1969-12-31"}) {
    EXPECT_EQ(Parsed(text, date), text);
  }
  EXPECT_EQ(ParseValue("1970-01-01", date)->i64, 0);
  EXPECT_EQ(ParseValue("1998-12-01", date)->i64, 10561);
  EXPECT_EQ(ParseValue("1969-12-31", date)->i64, -1);
  EXPECT_EQ(Parsed("1998-9-2", date), "1998-09-02");
  for (const char* text :
       {"1900-02-29", "2023-02-29", "2023-13-01", "2023-00-10", "2023-04-31", "2023-01-32", "0000-01-01"}) {
    EXPECT_EQ(Parsed(text, date), "error: value \"" + std::string(text) + "\" is out of range for type date");
  }
  for (const char* text :
       {"", "1998", "1998-12", "98-12-01", "1998-12-01x", "1998/12/01", "10000-01-01", "1998-12-001"}) {
    EXPECT_EQ(Parsed(text, date), "error: invalid input syntax for type date: \"" + std::string(text) + "\"");
  }
}

TEST(TabletValue, Timestamps) {
  const SqlType ts = Of(TypeId::kTimestamp);
  EXPECT_EQ(Parsed("1998-12-01 12:34:56", ts), "1998-12-01 12:34:56");
  EXPECT_EQ(Parsed("1998-12-01T12:34", ts), "1998-12-01 12:34:00");
  EXPECT_EQ(Parsed("1998-12-01", ts), "1998-12-01 00:00:00");
  EXPECT_EQ(Parsed("1998-12-01 00:00:00.5", ts), "1998-12-01 00:00:00.5");
  EXPECT_EQ(Parsed("1998-12-01 00:00:00.000001", ts), "1998-12-01 00:00:00.000001");
  EXPECT_EQ(Parsed("1998-12-31 23:59:59.9999995", ts), "1999-01-01 00:00:00");
  EXPECT_EQ(Parsed("1969-12-31 23:59:59.25", ts), "1969-12-31 23:59:59.25");
  EXPECT_EQ(ParseValue("1970-01-01 00:00:01", ts)->i64, 1000000);
  EXPECT_EQ(Parsed("0001-01-01 00:00:00", ts), "0001-01-01 00:00:00");
  EXPECT_EQ(Parsed("1998-12-01 24:00", ts), "1998-12-02 00:00:00");
  EXPECT_EQ(Parsed("1998-12-01 12:3", ts), "1998-12-01 12:03:00");
  EXPECT_EQ(Parsed("1998-12-01 12:30:00+01", ts), "1998-12-01 12:30:00") << "the time zone does not matter";
  for (const char* text :
       {"1998-12-01 24:00:00.1", "1998-12-01 25:00", "1998-12-01 12:60", "1998-12-01 12:00:60", "1998-02-30 12:00"}) {
    EXPECT_EQ(Parsed(text, ts), "error: value \"" + std::string(text) + "\" is out of range for type timestamp");
  }
  for (const char* text :
       {"1998-12-01 ", "1998-12-01 12", "1998-12-01 12:3x", "1998-12-01 12:30:", "1998-12-01 12:30:00.",
        "1998-12-01 12:30:00+1:2:3:4", "12:30", "1998-12-01 12:30 AM PM", "1998-12-01T", "10000-01-01 00:00"}) {
    const bool only_blank_behind = std::string(text) == "1998-12-01 ";
    EXPECT_EQ(Parsed(text, ts), only_blank_behind
                                    ? "1998-12-01 00:00:00"
                                    : "error: invalid input syntax for type timestamp: \"" + std::string(text) + "\"");
  }
}

TEST(TabletValue, Text) {
  EXPECT_EQ(Parsed("  a b ", SqlType::Text()), "  a b ") << "blanks belong to text";
  EXPECT_EQ(Parsed("", SqlType::Text()), "");
  EXPECT_EQ(Parsed("\xC3\xA4\xC3\xB6\xC3\xBC", SqlType::Text(3)), "\xC3\xA4\xC3\xB6\xC3\xBC")
      << "characters, not bytes";
  EXPECT_EQ(Parsed("abcd", SqlType::Text(3)), "error: value too long for type VARCHAR(3): \"abcd\"");
  EXPECT_EQ(Parsed("\xC3", SqlType::Text()), "error: invalid UTF-8: \"\\xc3\"");
  EXPECT_EQ(Parsed(std::string("a\0b", 3), SqlType::Text()), "error: text holds a NUL byte: \"a\\x00b\"");
  const Status error = ParseValue(std::string(1000, 'q'), Of(TypeId::kInteger)).status();
  EXPECT_EQ(error.message(), "invalid input syntax for type integer: \"" + std::string(60, 'q') + "...\"");
  EXPECT_EQ(error.code(), ErrorCode::kSql);
}

TEST(TabletValue, Utf8) {
  for (const char* good : {"", "a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "0123456789abcdef\xC3\xA4"}) {
    EXPECT_EQ(FindInvalidUtf8(good), std::string::npos) << good;
  }
  for (const char* bad : {"\x80", "\xC1\x80", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82"}) {
    EXPECT_EQ(FindInvalidUtf8(bad), 0u);
    EXPECT_EQ(FindInvalidUtf8("0123456789" + std::string(bad)), 10u);
  }
  EXPECT_EQ(CountCharacters("\xC3\xA4z\xF0\x9F\x98\x80"), 3u);
  EXPECT_EQ(QuoteForMessage("a\nb\x7F"), "\"a\\x0ab\\x7f\"");
}

TEST(TabletValue, VectorsKeepNullsInStep) {
  for (const SqlType& type : {Of(TypeId::kInteger), Of(TypeId::kDouble), SqlType::Decimal(20, 0), SqlType::Text()}) {
    ColumnVector a, b;
    a.type = b.type = type;
    const Value one = ParseValue("1", type).value();
    a.Append(one);
    a.Append(Value::Null(type));
    a.Append(one);
    b.Append(one);
    b.AppendAll(a);
    b.AppendFrom(a, 1);
    b.AppendFrom(a, 0);
    b.AppendAll(ColumnVector{type, {}, {}, {}, {}, {}});
    ASSERT_EQ(b.size(), 6u);
    for (size_t row = 0; row < 6; ++row) {
      EXPECT_EQ(b.IsNull(row), row == 2 || row == 4);
      std::string text;
      AppendText(b, row, &text);
      EXPECT_EQ(text, b.IsNull(row) ? "" : "1");
    }
    // A vector without NULLs after one with some, and the other way round.
    ColumnVector c;
    c.type = type;
    c.Append(one);
    a.AppendAll(c);
    EXPECT_FALSE(a.IsNull(3));
    c.AppendAll(a);
    EXPECT_TRUE(c.IsNull(2));
    c.Clear();
    EXPECT_EQ(c.size(), 0u);
  }
}

/// Digit by digit.
std::string SlowDecimal(int128_t v, int scale) {
  std::string text;
  uint128_t rest = v < 0 ? ~static_cast<uint128_t>(v) + 1 : static_cast<uint128_t>(v);
  for (int digit = 0; rest != 0 || digit <= scale; ++digit, rest /= 10) {
    if (digit == scale && scale > 0) text.insert(0, ".");
    text.insert(0, 1, static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  return (v < 0 ? "-" : "") + text;
}

TEST(FixedText, DecimalsOfAnyLengthAndScale) {
  int128_t power = 1;
  for (int digits = 0; digits <= 38; ++digits) {
    for (const int128_t v : {power, power - 1, power + 1, power * 7 / 3, -power, 1 - power}) {
      for (int scale = 0; scale <= 38; ++scale) {
        char text[kLongestFixedText];
        ASSERT_EQ(std::string(text, PutDecimal(v, scale, text)), SlowDecimal(v, scale)) << digits << " " << scale;
      }
    }
    if (digits < 38) power *= 10;
  }
}

TEST(FixedText, DaysAndMicrosecondsAreParsedBack) {
  for (int64_t days = -719000; days < 2932896; days += 97) {
    char text[kLongestFixedText];
    const std::string date(text, PutDate(days, text));
    const Result<Value> back = ParseValue(date, SqlType{TypeId::kDate});
    ASSERT_TRUE(back.ok() && back->i64 == days) << days << " " << date;
    const int64_t moment = days * 86400000000 + std::abs(days) * 7919000013 % 86400000000;
    const std::string time(text, PutTimestamp(moment, text));
    const Result<Value> same = ParseValue(time, SqlType{TypeId::kTimestamp});
    ASSERT_TRUE(same.ok() && same->i64 == moment) << moment << " " << time;
  }
}

}  // namespace
}  // namespace tessera
