// The binder: names, types of expressions, comparisons with constants, folding, grouping, ordering, errors with their
// position.
#include "tests/compiler/bind_fixture.h"
#include "vm/rows/sorted_rows.h"

namespace tessera {
namespace {

// ---- Constants and folding

TEST_F(BindTest, TypesOfLiterals) {
  EXPECT_EQ(Constant("0"), "0 : INTEGER");
  EXPECT_EQ(Constant("2147483647"), "2147483647 : INTEGER");
  EXPECT_EQ(Constant("2147483648"), "2147483648 : BIGINT");
  EXPECT_EQ(Constant("-2147483648"), "-2147483648 : INTEGER");
  EXPECT_EQ(Constant("9223372036854775808"), "9223372036854775808 : DECIMAL(19,0)");
  EXPECT_EQ(Constant("1.50"), "1.50 : DECIMAL(3,2)");
  EXPECT_EQ(Constant(".5"), "0.5 : DECIMAL(1,1)");
  EXPECT_EQ(Constant("007.0"), "7.0 : DECIMAL(2,1)");
  EXPECT_EQ(Constant("1e3"), "1000 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("1e400"), "value \"1e400\" is out of range for type double precision");
  // 39 digits: more than DECIMAL has.
  EXPECT_EQ(Constant("123456789012345678901234567890123456789"),
            "number 123456789012345678901234567890123456789 is out of range: more than 38 digits");
  EXPECT_EQ(Constant("123456789012345678901234567890123456789."),
            "number 123456789012345678901234567890123456789. is out of range: more than 38 digits");
  EXPECT_EQ(Constant("true"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'it''s'"), "'it''s' : TEXT");
  EXPECT_EQ(Constant("NULL"), "NULL : TEXT?");
  EXPECT_EQ(Constant("date '1998-12-01'"), "DATE '1998-12-01' : DATE");
  EXPECT_EQ(Constant("timestamp '1998-12-01 1:02:03'"), "TIMESTAMP '1998-12-01 01:02:03' : TIMESTAMP");
}

// libpg_query prints no value for a negative integer constant: it is read from the text again.
TEST_F(BindTest, NegativeIntegers) {
  EXPECT_EQ(Constant("-5"), "-5 : INTEGER");
  EXPECT_EQ(Constant("- 5"), "-5 : INTEGER");
  EXPECT_EQ(Constant("-(7)"), "-7 : INTEGER");
  EXPECT_EQ(Constant("- - 8"), "8 : INTEGER");
  EXPECT_EQ(Constant("-(-(-9))"), "-9 : INTEGER");
  EXPECT_EQ(Constant("- /* 1 /* 2 */ */ -- 3\n 10"), "-10 : INTEGER");
  EXPECT_EQ(Constant("1 - -2"), "3 : INTEGER");
  EXPECT_EQ(Constant("-0"), "0 : INTEGER");
}

TEST_F(BindTest, ArithmeticFolds) {
  EXPECT_EQ(Constant("1 + 2 * 3"), "7 : INTEGER");
  EXPECT_EQ(Constant("7 / 2"), "3 : INTEGER");
  EXPECT_EQ(Constant("-7 / 2"), "-3 : INTEGER");
  EXPECT_EQ(Constant("-7 % 3"), "-1 : INTEGER");
  EXPECT_EQ(Constant("1 / 0"), "NULL : INTEGER?");
  EXPECT_EQ(Constant("1 % 0"), "NULL : INTEGER?");
  EXPECT_EQ(Constant("1e0 / 0"), "NULL : DOUBLE PRECISION?");
  EXPECT_EQ(Constant("1.5 / 0"), "NULL : DOUBLE PRECISION?");
  EXPECT_EQ(Constant("1.5 + 1"), "2.5 : DECIMAL(12,1)");
  EXPECT_EQ(Constant("1.25 * 1.5"), "1.875 : DECIMAL(5,3)");
  EXPECT_EQ(Constant("1 / 4.0"), "0.25 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("5.5 % 2"), "1.5 : DECIMAL(2,1)");
  EXPECT_EQ(Constant("0.1 + 0.2 = 0.3"), "true : BOOLEAN");
  EXPECT_EQ(Constant("0.1e0 + 0.2e0 = 0.3e0"), "false : BOOLEAN");
  EXPECT_EQ(Constant("1::real / 3::real"), "0.33333334 : REAL");
  EXPECT_EQ(Constant("1 + NULL"), "NULL : INTEGER?");
  EXPECT_EQ(Constant("abs(-5)"), "5 : INTEGER");
  EXPECT_EQ(Constant("mod(7, 3)"), "1 : INTEGER");
  EXPECT_EQ(Constant("- '5'"), "-5 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("2147483647 + 1"), "integer out of range");
  EXPECT_EQ(Constant("32767::smallint + 1::smallint"), "smallint out of range");
  EXPECT_EQ(Constant("9223372036854775807 + 1"), "bigint out of range");
  EXPECT_EQ(Constant("(-2147483648) / -1"), "integer out of range");
  EXPECT_EQ(Constant("99999999999999999999999999999999999999 + 1"), "DECIMAL(38,0) out of range");
  EXPECT_EQ(Constant("99999999999999999999999999999999999999 * 10"), "numeric value out of range: more than 38 digits");
  EXPECT_EQ(Constant("0.12345678901234567890 * 0.1234567890123456789"),
            "the product of DECIMAL(20,20) and DECIMAL(19,19) needs 39 digits after the point, more than 38");
}

TEST_F(BindTest, RoundingFolds) {
  EXPECT_EQ(Constant("round(2.5)"), "3 : DECIMAL(2,0)");
  EXPECT_EQ(Constant("round(-2.5)"), "-3 : DECIMAL(2,0)");
  EXPECT_EQ(Constant("round(2.567, 2)"), "2.57 : DECIMAL(4,2)");
  EXPECT_EQ(Constant("round(99.9, 0)"), "100 : DECIMAL(3,0)");
  EXPECT_EQ(Constant("round(2.5, 4)"), "2.5 : DECIMAL(2,1)");
  EXPECT_EQ(Constant("round(7)"), "7 : INTEGER");
  EXPECT_EQ(Constant("round(2.5e0)"), "2 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("round(3.5e0)"), "4 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("round(2.25e0, 1)"), "2.3 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("round(1234e0, -2)"), "1200 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("floor(-1.5)"), "-2 : DECIMAL(2,0)");
  EXPECT_EQ(Constant("ceil(-1.5)"), "-1 : DECIMAL(2,0)");
  EXPECT_EQ(Constant("ceiling(1.2e0)"), "2 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("round(1250, -2)"), "1300 : INTEGER");
  EXPECT_EQ(Constant("round(-1249.99, -2)"), "-1200 : DECIMAL(5,0)");
  EXPECT_EQ(Constant("trunc(-1299.99, -2)"), "-1200 : DECIMAL(5,0)");
  EXPECT_EQ(Constant("trunc(-1.599, 2)"), "-1.59 : DECIMAL(4,2)");
  EXPECT_EQ(Constant("round(32767::smallint, -1)"), "smallint out of range");
}

TEST_F(BindTest, CastsFold) {
  EXPECT_EQ(Constant("1.5::int"), "2 : INTEGER");
  EXPECT_EQ(Constant("-2.5::int"), "-3 : INTEGER");
  EXPECT_EQ(Constant("2.5e0::int"), "2 : INTEGER");
  EXPECT_EQ(Constant("'42'::int"), "42 : INTEGER");
  EXPECT_EQ(Constant("cast('1.239' as decimal(5,2))"), "1.24 : DECIMAL(5,2)");
  EXPECT_EQ(Constant("cast(1e0/3 as decimal(10,4))"), "0.3333 : DECIMAL(10,4)");
  EXPECT_EQ(Constant("1.25::decimal"), "1.250 : DECIMAL(18,3)");
  EXPECT_EQ(Constant("true::int"), "1 : INTEGER");
  EXPECT_EQ(Constant("2::boolean"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'yes'::bool"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'h\xC3\xA9llo'::varchar(2)"), "'h\xC3\xA9' : VARCHAR(2)");
  EXPECT_EQ(Constant("12.50::text"), "'12.50' : TEXT");
  EXPECT_EQ(Constant("true::text"), "'true' : TEXT");
  EXPECT_EQ(Constant("date '2000-01-02'::timestamp"), "TIMESTAMP '2000-01-02 00:00:00' : TIMESTAMP");
  EXPECT_EQ(Constant("timestamp '1969-12-31 23:00:00'::date"), "DATE '1969-12-31' : DATE");
  EXPECT_EQ(Constant("0.1::real::double precision"), "0.10000000149011612 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("NULL::date"), "NULL : DATE?");
  EXPECT_EQ(Constant("99.999::decimal(4,2)"), "DECIMAL(4,2) out of range");
  EXPECT_EQ(Constant("70000::smallint"), "smallint out of range");
  EXPECT_EQ(Constant("'abc'::int"), "invalid input syntax for type integer: \"abc\"");
  EXPECT_EQ(Constant("date '2000-02-30'"), "value \"2000-02-30\" is out of range for type date");
  EXPECT_EQ(Constant("date '2000-01-01'::int"), "cannot cast type DATE to INTEGER");
}

TEST_F(BindTest, LogicFolds) {
  EXPECT_EQ(Constant("true and null"), "NULL : BOOLEAN?");
  EXPECT_EQ(Constant("false and null"), "false : BOOLEAN");
  EXPECT_EQ(Constant("true or null"), "true : BOOLEAN");
  EXPECT_EQ(Constant("not null"), "NULL : BOOLEAN?");
  EXPECT_EQ(Constant("null is null"), "true : BOOLEAN");
  EXPECT_EQ(Constant("null is true"), "false : BOOLEAN");
  EXPECT_EQ(Constant("null is unknown"), "true : BOOLEAN");
  EXPECT_EQ(Constant("1 in (1, 2)"), "true : BOOLEAN");
  EXPECT_EQ(Constant("3 in (1, null)"), "NULL : BOOLEAN?");
  EXPECT_EQ(Constant("3 not in (1, 2)"), "true : BOOLEAN");
  EXPECT_EQ(Constant("5 between 1 and 10"), "true : BOOLEAN");
  EXPECT_EQ(Constant("null is distinct from 1"), "true : BOOLEAN");
  EXPECT_EQ(Constant("null is not distinct from null"), "true : BOOLEAN");
  EXPECT_EQ(Constant("nullif(1, 1)"), "NULL : INTEGER?");
  EXPECT_EQ(Constant("coalesce(null, 2, 3)"), "2 : INTEGER");
  EXPECT_EQ(Constant("greatest(1, 2.5, null)"), "2.5 : DECIMAL(11,1)");
  EXPECT_EQ(Constant("least('b', 'a')"), "'a' : TEXT");
  EXPECT_EQ(Constant("case when false then 1 when true then 2 else 3 end"), "2 : INTEGER");
  EXPECT_EQ(Constant("case 2 when 1 then 'a' when 2 then 'b' end"), "'b' : TEXT");
  EXPECT_EQ(Constant("'NaN'::float8 = 'nan'::float8"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'NaN'::float8 > 1e300"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'-0'::float8 = 0"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'a' < 'b'"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'B' < 'a'"), "true : BOOLEAN");
}

TEST_F(BindTest, TextFolds) {
  EXPECT_EQ(Constant("upper('abc') || 'd'"), "'ABCd' : TEXT");
  EXPECT_EQ(Constant("'a' || 1 || 2.50"), "'a12.50' : TEXT");
  EXPECT_EQ(Constant("'a' || null"), "NULL : TEXT?");
  EXPECT_EQ(Constant("concat('a', null, 1)"), "'a1' : TEXT");
  EXPECT_EQ(Constant("length('h\xC3\xA9')"), "2 : INTEGER");
  EXPECT_EQ(Constant("substring('hello' from 2 for 3)"), "'ell' : TEXT");
  EXPECT_EQ(Constant("substr('hello', 0, 3)"), "'he' : TEXT");
  EXPECT_EQ(Constant("substring('hello' from 2 for -1)"), "negative substring length not allowed");
  EXPECT_EQ(Constant("trim('  a ') || '|'"), "'a|' : TEXT");
  EXPECT_EQ(Constant("ltrim('  a ') || '|'"), "'a |' : TEXT");
  EXPECT_EQ(Constant("trim(trailing from 'a ')"), "'a' : TEXT");
  EXPECT_EQ(Constant("'abc' like 'a%'"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'a%c' like 'a\\%c'"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'abc' like 'a\\%c'"), "false : BOOLEAN");
  EXPECT_EQ(Constant("'a%c' like 'a!%c' escape '!'"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'a\\c' like 'a\\c' escape ''"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'ABC' ilike 'a_c'"), "true : BOOLEAN");
  EXPECT_EQ(Constant("'a' like 'a\\'"), "LIKE pattern must not end with escape character");
  EXPECT_EQ(Constant("'a' like 'a' escape 'xy'"), "invalid escape string");
}

TEST_F(BindTest, DatesFold) {
  EXPECT_EQ(Constant("date '1998-12-01' - interval '90' day"), "DATE '1998-09-02' : DATE");
  EXPECT_EQ(Constant("date '2000-01-31' + interval '1 month'"), "DATE '2000-02-29' : DATE");
  EXPECT_EQ(Constant("interval '1 year 2 months' + date '1995-01-01'"), "DATE '1996-03-01' : DATE");
  EXPECT_EQ(Constant("date '2000-01-01' + interval '12' hour"), "TIMESTAMP '2000-01-01 12:00:00' : TIMESTAMP");
  EXPECT_EQ(Constant("date '2000-01-01' + interval '1 week'"), "DATE '2000-01-08' : DATE");
  EXPECT_EQ(Constant("date '2000-01-01' + interval '1 mon -3 days 4:05:06.5 ago'"),
            "TIMESTAMP '1999-12-03 19:54:53.5' : TIMESTAMP");
  EXPECT_EQ(Constant("timestamp '2000-03-01 10:00' - interval '1 day'"), "TIMESTAMP '2000-02-29 10:00:00' : TIMESTAMP");
  EXPECT_EQ(Constant("date '2000-03-01' - date '2000-02-01'"), "29 : INTEGER");
  EXPECT_EQ(Constant("date '2000-03-01' - 1"), "DATE '2000-02-29' : DATE");
  EXPECT_EQ(Constant("1 + date '2000-02-28'"), "DATE '2000-02-29' : DATE");
  EXPECT_EQ(Constant("extract(year from date '1999-03-04')"), "1999 : BIGINT");
  EXPECT_EQ(Constant("extract(second from timestamp '1999-03-04 00:00:01.25')"), "1.25 : DOUBLE PRECISION");
  EXPECT_EQ(Constant("date_part('month', date '1999-03-04')"), "3 : BIGINT");
  EXPECT_EQ(Constant("quarter(date '1999-08-04')"), "3 : BIGINT");
  EXPECT_EQ(Constant("date '1998-01-01' < timestamp '1998-01-01 00:00:01'"), "true : BOOLEAN");
  EXPECT_EQ(Constant("date '9999-12-31' + 1"), "date out of range");
  EXPECT_EQ(Constant("date '9999-12-31' + interval '1 month'"), "date out of range: years 1 to 9999");
  EXPECT_EQ(Constant("date '2000-01-01' + interval '1 blink'"), "invalid input syntax for type interval: \"1 blink\"");
  EXPECT_EQ(Constant("date '2000-01-01' + interval '0.5 months'"), Constant("date '2000-01-16'"));
  EXPECT_EQ(Expression("case when i = 1 then interval '1 day' end + day"),
            "CAST(t.day AS TIMESTAMP) + CASE WHEN t.i = 1 THEN INTERVAL '1 day' END : TIMESTAMP?");
  EXPECT_EQ(Constant("interval '1 day'"), "INTERVAL '1 day' : INTERVAL");
}

TEST_F(BindTest, WhatMightNotBeEvaluatedDoesNotFail) {
  EXPECT_EQ(Expression("case when i = 1 then 2147483647 + 1 else 0 end"),
            "CASE WHEN t.i = 1 THEN 2147483647 + 1 ELSE 0 END : INTEGER");
  EXPECT_EQ(Expression("case when true then 1 else 2147483647 + 1 end"), "1 : INTEGER");
  EXPECT_EQ(Where("i = 1 and 2147483647 + n > 0 and 2147483647 + 1 > 0"),
            "t.i = 1 & 2147483647 + t.n > 0 & 2147483647 + 1 > 0");
  EXPECT_EQ(Where("i = 1 or 70000::smallint > 0"), "t.i = 1 OR CAST(70000 AS SMALLINT) > 0");
  // A literal that does not read as its type is wrong wherever it stands.
  EXPECT_EQ(Expression("case when i = 1 then 'x'::int end"), "invalid input syntax for type integer: \"x\"");
}

// ---- Types of expressions over columns (operators: type_table_test.cc)

TEST_F(BindTest, OperandsAreConvertedExplicitly) {
  EXPECT_EQ(Expression("i + s"), "t.i + t.s : INTEGER?");
  EXPECT_EQ(Expression("d + i"), "t.d + CAST(t.i AS DECIMAL(12,2)) : DECIMAL(13,2)?");
  EXPECT_EQ(Expression("d + w"), "CAST(t.d AS DECIMAL(19,4)) + t.w : DECIMAL(31,4)?");
  EXPECT_EQ(Expression("d * w"), "CAST(t.d AS DECIMAL(19,2)) * t.w : DECIMAL(38,6)?");
  EXPECT_EQ(Expression("1 - d"), "1.00 - t.d : DECIMAL(13,2)?");
  EXPECT_EQ(Expression("d * (1 - d)"), "t.d * (1.00 - t.d) : DECIMAL(25,4)?");
  EXPECT_EQ(Expression("r + f"), "t.r + t.f : DOUBLE PRECISION?");
  EXPECT_EQ(Expression("r + i"), "t.r + CAST(t.i AS DOUBLE PRECISION) : DOUBLE PRECISION?");
  EXPECT_EQ(Expression("i + '5'"), "t.i + 5 : INTEGER?");
  EXPECT_EQ(Expression("day - 1"), "t.day + -1 : DATE?");
  EXPECT_EQ(Expression("day + interval '1 month 2 days'"), "add_months(t.day, 1) + 2 : DATE?");
  EXPECT_EQ(Expression("moment - interval '1' hour"), "add_microseconds(t.moment, -3600000000) : TIMESTAMP?");
  EXPECT_EQ(Expression("day - '2000-01-01'"), "t.day - DATE '2000-01-01' : INTEGER?");
  EXPECT_EQ(Expression("i || v"), "CAST(t.i AS TEXT) || t.v : TEXT?");
}

TEST_F(BindTest, FunctionsOfColumns) {
  EXPECT_EQ(TypeOf("round(d, 1)"), "DECIMAL(12,1)");
  EXPECT_EQ(TypeOf("round(d)"), "DECIMAL(11,0)");
  EXPECT_EQ(Expression("round(d, 5)"), "t.d : DECIMAL(12,2)?");
  EXPECT_EQ(Expression("round(i)"), "t.i : INTEGER?");
  EXPECT_EQ(TypeOf("round(r)"), "DOUBLE PRECISION");
  EXPECT_EQ(TypeOf("floor(w)"), "DECIMAL(27,0)");
  EXPECT_EQ(Expression("ceil(b)"), "t.b : BIGINT?");
  EXPECT_EQ(TypeOf("abs(r)"), "REAL");
  EXPECT_EQ(TypeOf("-d"), "DECIMAL(12,2)");
  EXPECT_EQ(TypeOf("upper(v)"), "TEXT");
  EXPECT_EQ(TypeOf("length(txt)"), "INTEGER");
  EXPECT_EQ(TypeOf("extract(year from day)"), "BIGINT");
  EXPECT_EQ(TypeOf("extract(second from moment)"), "DOUBLE PRECISION");
  EXPECT_EQ(TypeOf("year(moment)"), "BIGINT");
  EXPECT_EQ(Expression("upper(i)"), "function upper(INTEGER) does not exist");
  EXPECT_EQ(Expression("round(d, i)"), "ROUND to a number of digits that is not a constant is not supported");
}

TEST_F(BindTest, CaseFindsACommonType) {
  EXPECT_EQ(Expression("case when i = 1 then 'x' end"), "CASE WHEN t.i = 1 THEN 'x' END : TEXT?");
  EXPECT_EQ(Expression("case i when 1 then 1 when 2 then 2.5 end"),
            "CASE WHEN t.i = 1 THEN 1.0 WHEN t.i = 2 THEN 2.5 END : DECIMAL(11,1)?");
  EXPECT_EQ(TypeOf("case when flag then s else b end"), "BIGINT");
  EXPECT_EQ(TypeOf("case when flag then d else w end"), "DECIMAL(30,4)");
  EXPECT_EQ(TypeOf("case when flag then d else f end"), "DOUBLE PRECISION");
  EXPECT_EQ(TypeOf("case when flag then day else moment end"), "TIMESTAMP");
  EXPECT_EQ(TypeOf("case when flag then v else 'a longer literal' end"), "TEXT");
  EXPECT_EQ(TypeOf("case when flag then null else day end"), "DATE");
  EXPECT_EQ(Expression("case when flag then i else txt end"), "CASE types INTEGER and TEXT cannot be matched");
  EXPECT_EQ(Expression("coalesce(i, s, 0)"),
            "CASE WHEN t.i IS NOT NULL THEN t.i WHEN t.s IS NOT NULL THEN t.s ELSE 0 END : INTEGER");
  EXPECT_EQ(Expression("coalesce(n, 1)"), "t.n : INTEGER");
  EXPECT_EQ(Expression("nullif(n, 1)"), "CASE WHEN t.n = 1 THEN NULL ELSE t.n END : INTEGER?");
  EXPECT_EQ(Expression("greatest(n, 1)"), "CASE WHEN t.n >= 1 THEN t.n ELSE 1 END : INTEGER");
  EXPECT_EQ(Expression("least(i, s)"),
            "CASE WHEN t.i IS NOT NULL AND (t.i <= t.s OR t.s IS NULL) THEN t.i ELSE t.s END : INTEGER?");
  EXPECT_EQ(Expression("coalesce(i, 'x')"), "invalid input syntax for type integer: \"x\"");
}

TEST_F(BindTest, NullabilityIsProved) {
  EXPECT_EQ(Expression("n + 1"), "t.n + 1 : INTEGER");
  EXPECT_EQ(Expression("n / 2"), "t.n / 2 : INTEGER");
  EXPECT_EQ(Expression("n / n"), "t.n / t.n : INTEGER?");
  EXPECT_EQ(Expression("n is null"), "false : BOOLEAN");
  EXPECT_EQ(Expression("i is null"), "t.i IS NULL : BOOLEAN");
  EXPECT_EQ(Expression("n in (1, 2)"), "t.n IN (1, 2) : BOOLEAN");
  EXPECT_EQ(Expression("n in (1, null)"), "t.n IN (1, NULL) : BOOLEAN?");
  // Statistics without NULLs prove it too.
  auto table = std::make_shared<TableInfo>(*snapshot_.tables[0]);
  for (ColumnStatistics& s : table->statistics) s.null_count = 0;
  snapshot_.tables[0] = table;
  EXPECT_EQ(Expression("i + 1"), "t.i + 1 : INTEGER");
}

// ---- Comparisons

TEST_F(BindTest, ConstantsTakeTheColumnsType) {
  EXPECT_EQ(Where("s = 5 and b = 5 and d = 5 and w > 5.5"), "t.s = 5 & t.b = 5 & t.d = 5.00 & t.w > 5.5000");
  EXPECT_EQ(Where("5 < i and 9 >= i"), "t.i > 5 & t.i <= 9");
  EXPECT_EQ(Where("day >= '1998-01-01'"), "t.day >= DATE '1998-01-01'");
  EXPECT_EQ(Where("moment >= date '1998-01-01'"), "t.moment >= TIMESTAMP '1998-01-01 00:00:00'");
  EXPECT_EQ(Where("day = timestamp '1998-01-01 00:00:00'"), "t.day = DATE '1998-01-01'");
  EXPECT_EQ(Where("v = 'longer than ten characters'"), "t.v = 'longer than ten characters'");
  EXPECT_EQ(Where("i = '7'"), "t.i = 7");
  EXPECT_EQ(Where("d = '7.5'"), "t.d = 7.50");
  EXPECT_EQ(Where("f > 3"), "t.f > 3");
  EXPECT_EQ(Where("r = 0.5"), "t.r = 0.5");
  EXPECT_EQ(Where("flag = 't'"), "t.flag = true");
  EXPECT_EQ(Where("i = 1e0"), "t.i = 1");
  EXPECT_EQ(Where("i + 1 = 5"), "t.i + 1 = 5");
}

TEST_F(BindTest, ConstantsThatTheColumnCannotHold) {
  EXPECT_EQ(Where("i < 1.5"), "t.i <= 1");
  EXPECT_EQ(Where("i <= 1.5"), "t.i <= 1");
  EXPECT_EQ(Where("i > 1.5"), "t.i > 1");
  EXPECT_EQ(Where("i >= -1.5"), "t.i > -2");
  EXPECT_EQ(Where("i < 1.5e0"), "t.i <= 1");
  EXPECT_EQ(Where("d < 1.234"), "t.d <= 1.23");
  EXPECT_EQ(Where("day < timestamp '1998-01-01 12:00:00'"), "t.day <= DATE '1998-01-01'");
  EXPECT_EQ(Where("day < timestamp '1969-12-31 12:00:00'"), "t.day <= DATE '1969-12-31'");
  // Never and always, but NULL stays NULL.
  EXPECT_EQ(Where("s = 70000"), "t.s > 32767");
  EXPECT_EQ(Where("s < 70000"), "t.s <= 32767");
  EXPECT_EQ(Where("s > -70000"), "t.s <= 32767");
  EXPECT_EQ(Where("i = 1.5"), "t.i > 2147483647");
  EXPECT_EQ(Where("i <> 1.5"), "t.i <= 2147483647");
  EXPECT_EQ(Where("i < 'NaN'::float8"), "t.i <= 2147483647");
  EXPECT_EQ(Where("b < 99999999999999999999"), "t.b <= 9223372036854775807");
  EXPECT_EQ(Where("d > 99999999999.5"), "t.d > 9999999999.99");
  EXPECT_EQ(Where("n < 3000000000"), "nothing");
  EXPECT_EQ(Where("n > 3000000000"), "false");
  EXPECT_EQ(Where("n = 1e300"), "false");
  EXPECT_EQ(Where("i = null"), "false");
}

TEST_F(BindTest, ComparisonsOfColumns) {
  EXPECT_EQ(Where("s = b"), "t.s = t.b");
  EXPECT_EQ(Where("i = d"), "CAST(t.i AS DECIMAL(12,2)) = t.d");
  EXPECT_EQ(Where("d = w"), "CAST(t.d AS DECIMAL(19,4)) = t.w");
  EXPECT_EQ(Where("r = f"), "t.r = t.f");
  EXPECT_EQ(Where("i = f"), "CAST(t.i AS DOUBLE PRECISION) = t.f");
  EXPECT_EQ(Where("b > 1e3"), "CAST(t.b AS DOUBLE PRECISION) > 1000");
  EXPECT_EQ(Where("r = 0.1"), "t.r = 0.1");
  EXPECT_EQ(Where("day = moment"), "CAST(t.day AS TIMESTAMP) = t.moment");
  EXPECT_EQ(Where("v = txt"), "t.v = t.txt");
  EXPECT_EQ(Where("i = txt"), "operator does not exist: INTEGER = TEXT");
  AddTable("CREATE TABLE wide (a DECIMAL(38,0), b DECIMAL(38,20))");
  EXPECT_EQ(
      Show("SELECT 1 FROM wide WHERE a = b"),
      "from wide\nwhere CAST(wide.a AS DOUBLE PRECISION) = CAST(wide.b AS DOUBLE PRECISION)\noutput 1 = 1 : INTEGER\n");
}

TEST_F(BindTest, InLists) {
  EXPECT_EQ(Where("i in (1, 2, 3)"), "t.i IN (1, 2, 3)");
  EXPECT_EQ(Where("i not in (1, 2)"), "NOT t.i IN (1, 2)");
  EXPECT_EQ(Where("s in (1, 70000)"), "t.s = 1");
  EXPECT_EQ(Where("s in (70000, 80000)"), "t.s > 32767");
  EXPECT_EQ(Where("n in (1.5, 2.5)"), "false");
  EXPECT_EQ(Where("d in (1, 2.55, 2.555)"), "t.d IN (1.00, 2.55)");
  EXPECT_EQ(Where("i in (1, null)"), "t.i IN (1, NULL)");
  EXPECT_EQ(Where("v in ('a', 'b')"), "t.v IN ('a', 'b')");
  EXPECT_EQ(Where("day in ('2000-01-01', date '2000-01-02')"), "t.day IN (DATE '2000-01-01', DATE '2000-01-02')");
  EXPECT_EQ(Where("i in (1 + 1, 4)"), "t.i IN (2, 4)");
  EXPECT_EQ(Where("i in (s, 5)"), "t.i = t.s OR t.i = 5");
  EXPECT_EQ(Where("5 in (i, s)"), "t.i = 5 OR t.s = 5");
  EXPECT_EQ(Where("b in (1e0, 2e0)"), "CAST(t.b AS DOUBLE PRECISION) = 1 OR CAST(t.b AS DOUBLE PRECISION) = 2");
  EXPECT_EQ(Where("r in (0.5, 0.1, 2)"), "t.r IN (0.5, 2)");
  EXPECT_EQ(Where("r in (0.1, 0.2)"), "t.r = 0.1");
  EXPECT_EQ(Where("i in (1, 'x')"), "invalid input syntax for type integer: \"x\"");
  EXPECT_EQ(Where("i in (1, true)"), "operator does not exist: INTEGER = BOOLEAN");
}

TEST_F(BindTest, BetweenLikeIsAndTheirKin) {
  EXPECT_EQ(Where("i between 1 and 2"), "t.i >= 1 & t.i <= 2");
  EXPECT_EQ(Where("i not between 1 and 2"), "NOT (t.i >= 1 AND t.i <= 2)");
  EXPECT_EQ(Where("v like 'a%'"), "t.v LIKE 'a%'");
  EXPECT_EQ(Where("v not like 'a_'"), "NOT t.v LIKE 'a_'");
  EXPECT_EQ(Where("v like 'a\\_b'"), "t.v = 'a_b'");
  EXPECT_EQ(Where("v ilike 'A%'"), "lower(t.v) LIKE 'a%'");
  EXPECT_EQ(Where("v like txt"), "like(t.v, t.txt) <> 0");
  EXPECT_EQ(Where("i like 'a'"), "operator does not exist: INTEGER LIKE TEXT");
  EXPECT_EQ(Where("flag is true"), "t.flag");
  EXPECT_EQ(Where("flag is not true"), "CASE WHEN t.flag THEN false ELSE true END");
  EXPECT_EQ(Where("flag is false"), "NOT t.flag");
  EXPECT_EQ(Where("flag is not unknown"), "t.flag IS NOT NULL");
  EXPECT_EQ(Where("i is distinct from s"),
            "CASE WHEN t.i = t.s THEN false WHEN t.i IS NULL AND t.s IS NULL THEN false ELSE true END");
  EXPECT_EQ(Where("i is not distinct from null"), "t.i IS NULL");
  EXPECT_EQ(Where("i is not distinct from null::text"), "operator does not exist: INTEGER = TEXT");
  EXPECT_EQ(Where("n is distinct from 1"), "NOT t.n = 1");
}

TEST_F(BindTest, ConjunctionsAreTakenApart) {
  EXPECT_EQ(Where("i = 1 and (s = 2 and (b = 3 and true))"), "t.i = 1 & t.s = 2 & t.b = 3");
  EXPECT_EQ(Where("true"), "nothing");
  EXPECT_EQ(Where("i = 1 and false"), "false");
  EXPECT_EQ(Where("i = 1 and null"), "false");
  EXPECT_EQ(Where("null"), "false");
  EXPECT_EQ(Where("i = 1 or true"), "nothing");
  EXPECT_EQ(Where("i = 1 or (s = 2 or false)"), "t.i = 1 OR t.s = 2");
}

// ---- FROM

TEST_F(BindTest, JoinsAndNames) {
  EXPECT_EQ(Show("SELECT t.i, x, q.name FROM t JOIN u AS q ON t.i = q.i AND q.x > 5"),
            "from t\nfrom u q\nwhere t.i = q.i\nwhere q.x > 5\noutput i = t.i : INTEGER?\noutput x = q.x : "
            "INTEGER?\noutput name = q.name : TEXT?\n");
  EXPECT_EQ(Show("SELECT u.* FROM u CROSS JOIN t WHERE t.i = u.i"),
            "from u\nfrom t\nwhere t.i = u.i\noutput i = u.i : INTEGER\noutput x = u.x : INTEGER?\noutput name = "
            "u.name : TEXT?\n");
  EXPECT_EQ(Show("SELECT * FROM u, u AS w(a, b)"),
            "from u\nfrom u w\noutput i = u.i : INTEGER\noutput x = u.x : INTEGER?\noutput name = u.name : TEXT?\n"
            "output a = w.a : INTEGER\noutput b = w.b : INTEGER?\noutput name = w.name : TEXT?\n");
  // A column merged by USING is there once, and first.
  EXPECT_EQ(
      Show("SELECT * FROM u JOIN u AS w USING (x) WHERE x = 1"),
      "from u\nfrom u w\nwhere u.x = w.x\nwhere u.x = 1\nwhere w.x = 1\noutput x = u.x : INTEGER?\noutput i = u.i : "
      "INTEGER\noutput name = u.name : TEXT?\n"
      "output i = w.i : INTEGER\noutput name = w.name : TEXT?\n");
  EXPECT_EQ(Message("SELECT i FROM t NATURAL JOIN u"), "no error");
  EXPECT_EQ(Message("SELECT name FROM t JOIN u USING (name)"),
            "column \"name\" specified in USING clause does not exist in left table");
}

TEST_F(BindTest, OutputNames) {
  const auto name = [&](std::string_view sql) {
    const Result<Statement> bound = BindText(sql);
    return bound.ok() ? bound->query->outputs[0].name : bound.status().message();
  };
  EXPECT_EQ(name("SELECT t.i FROM t"), "i");
  EXPECT_EQ(name("SELECT i + 1 FROM t"), "i + 1");
  EXPECT_EQ(name("SELECT sum( i )\n  FROM t"), "sum( i )");
  EXPECT_EQ(name("SELECT i   +\n-- why\n1, 2"), "column \"i\" does not exist");
  EXPECT_EQ(name("SELECT i   +\n-- why\n1, 2 FROM t"), "i + 1");
  EXPECT_EQ(name("SELECT extract(year from day) FROM t"), "extract(year from day)");
  EXPECT_EQ(name("SELECT i is distinct from 1 FROM t"), "i is distinct from 1");
  EXPECT_EQ(name("SELECT 'a, b from c' || v FROM t"), "'a, b from c' || v");
  EXPECT_EQ(name("SELECT 1 ORDER BY 1"), "1");
  EXPECT_EQ(name("SELECT i AS j FROM t"), "j");
  EXPECT_EQ(name("SELECT '" + std::string(300, 'x') + "'").size(), 103u);
}

// ---- Grouping and ordering

TEST_F(BindTest, GroupsAreRecognised) {
  EXPECT_EQ(Show("SELECT s + 1, sum(i) * 2 FROM t WHERE b > 1 GROUP BY s + 1 HAVING sum(i) > 10 AND s + 1 < 5 ORDER BY "
                 "sum(i) DESC, 1"),
            "from t\nwhere t.b > 1\nwhere t.s + 1 < 5\ngroup t.s + 1 : INTEGER?\naggregate sum t.i : BIGINT\nhaving "
            "aggregate 0 > 10\n"
            "output s + 1 = group key 0 : INTEGER?\noutput sum(i) * 2 = aggregate 0 * 2 : BIGINT?\nhidden  = aggregate "
            "0 : BIGINT?\n"
            "grouped\norder 2 desc nulls first\norder 0 asc nulls last\n");
  EXPECT_EQ(Show("SELECT i + s AS k, count(*) FROM t GROUP BY k"),
            "from t\ngroup t.i + t.s : INTEGER?\naggregate count(*) : BIGINT\noutput k = group key 0 : INTEGER?\n"
            "output count(*) = aggregate 0 : BIGINT\ngrouped\n");
  // A column of FROM comes before an output's name; positions; keys given twice and constants go.
  EXPECT_EQ(Show("SELECT i AS s, count(*) FROM t GROUP BY s, i, 1, 'x' || 'y'"),
            "from t\ngroup t.s : SMALLINT?\ngroup t.i : INTEGER?\naggregate count(*) : BIGINT\noutput s = group key 1 "
            ": INTEGER?\n"
            "output count(*) = aggregate 0 : BIGINT\ngrouped\n");
  EXPECT_EQ(Show("SELECT count(*) AS c FROM t GROUP BY v HAVING c > 1 ORDER BY c + 1"),
            "from t\ngroup t.v : VARCHAR(10)?\naggregate count(*) : BIGINT\nhaving aggregate 0 > 1\noutput c = "
            "aggregate 0 : BIGINT\n"
            "hidden  = aggregate 0 + 1 : BIGINT\ngrouped\norder 1 asc nulls last\n");
}

TEST_F(BindTest, Aggregates) {
  EXPECT_EQ(Show("SELECT sum(s), sum(b), sum(d), sum(r), avg(w), count(i), count(n), count(*), count(DISTINCT v), "
                 "min(day), max(DISTINCT v) FROM t"),
            "from t\n"
            "aggregate sum t.s : BIGINT\naggregate sum t.b : BIGINT\naggregate sum t.d : DECIMAL(38,2)\naggregate sum "
            "t.r : DOUBLE PRECISION\n"
            "aggregate avg t.w : DOUBLE PRECISION\naggregate count t.i : BIGINT\naggregate count(*) : "
            "BIGINT\naggregate count distinct t.v : BIGINT\n"
            "aggregate min t.day : DATE\naggregate max t.v : VARCHAR(10)\n"
            "output sum(s) = aggregate 0 : BIGINT?\noutput sum(b) = aggregate 1 : BIGINT?\noutput sum(d) = aggregate 2 "
            ": DECIMAL(38,2)?\n"
            "output sum(r) = aggregate 3 : DOUBLE PRECISION?\noutput avg(w) = aggregate 4 : DOUBLE PRECISION?\noutput "
            "count(i) = aggregate 5 : BIGINT\n"
            "output count(n) = aggregate 6 : BIGINT\noutput count(*) = aggregate 6 : BIGINT\noutput count(DISTINCT v) "
            "= aggregate 7 : BIGINT\n"
            "output min(day) = aggregate 8 : DATE?\noutput max(DISTINCT v) = aggregate 9 : VARCHAR(10)?\ngrouped\n");
  // Without GROUP BY there may be no row: sum(n) can be NULL. With it there cannot.
  EXPECT_EQ(Show("SELECT coalesce(sum(n), 0) FROM t"),
            "from t\naggregate sum t.n : BIGINT\noutput coalesce(sum(n), 0) = CASE WHEN aggregate 0 IS NOT NULL THEN "
            "aggregate 0 ELSE 0 END : BIGINT\ngrouped\n");
  EXPECT_EQ(Show("SELECT coalesce(sum(n), 0) FROM t GROUP BY s"),
            "from t\ngroup t.s : SMALLINT?\naggregate sum t.n : BIGINT\noutput coalesce(sum(n), 0) = aggregate 0 : "
            "BIGINT\ngrouped\n");
  EXPECT_EQ(Show("SELECT sum(i) FILTER (WHERE s > 1), count(*) FILTER (WHERE flag) FROM t"),
            "from t\naggregate sum CASE WHEN t.s > 1 THEN t.i END : BIGINT\naggregate count CASE WHEN t.flag THEN 1 "
            "END : BIGINT\n"
            "output sum(i) FILTER (WHERE s > 1) = aggregate 0 : BIGINT?\noutput count(*) FILTER (WHERE flag) = "
            "aggregate 1 : BIGINT\ngrouped\n");
  EXPECT_EQ(Message("SELECT sum(txt) FROM t"), "function sum(TEXT) does not exist");
  EXPECT_EQ(Message("SELECT sum() FROM t"), "function sum() does not exist");
  EXPECT_EQ(Message("SELECT sum(sum(i)) FROM t"), "aggregate function calls cannot be nested");
  EXPECT_EQ(Message("SELECT i FROM t GROUP BY sum(i)"), "aggregate functions are not allowed in GROUP BY");
  EXPECT_EQ(Message("SELECT 1 FROM t JOIN u ON sum(x) = 1"), "aggregate functions are not allowed in JOIN conditions");
  EXPECT_EQ(Message("SELECT upper(DISTINCT v) FROM t"), "DISTINCT specified, but upper is not an aggregate function");
}

TEST_F(BindTest, OrderAndLimit) {
  EXPECT_EQ(Show("SELECT i, s AS z FROM t ORDER BY z, i DESC NULLS LAST, b NULLS FIRST, 2 LIMIT 2 + 3 OFFSET 4"),
            "from t\noutput i = t.i : INTEGER?\noutput z = t.s : SMALLINT?\nhidden  = t.b : BIGINT?\n"
            "order 1 asc nulls last\norder 0 desc nulls last\norder 2 asc nulls first\nlimit 5\noffset 4\n");
  // An output's name comes before a column of FROM.
  EXPECT_EQ(Show("SELECT i AS s FROM t ORDER BY s"), "from t\noutput s = t.i : INTEGER?\norder 0 asc nulls last\n");
  EXPECT_EQ(Show("SELECT DISTINCT i, 1 FROM t ORDER BY i, 2, 1 + 1"),
            "from t\noutput i = t.i : INTEGER?\noutput 1 = 1 : INTEGER\ndistinct\norder 0 asc nulls last\n");
  EXPECT_EQ(Show("SELECT i FROM t FETCH FIRST 3 ROWS ONLY"), "from t\noutput i = t.i : INTEGER?\nlimit 3\n");
  EXPECT_EQ(Message("SELECT DISTINCT i FROM t ORDER BY s"),
            "for SELECT DISTINCT, ORDER BY expressions must appear in select list");
  EXPECT_EQ(Message("SELECT i FROM t ORDER BY 2"), "ORDER BY position 2 is not in select list");
  EXPECT_EQ(Message("SELECT i FROM t ORDER BY -1"), "ORDER BY position -1 is not in select list");
  EXPECT_EQ(Message("SELECT i FROM t ORDER BY 'i'"), "non-integer constant in ORDER BY");
  EXPECT_EQ(Message("SELECT i, s AS i FROM t ORDER BY i"), "ORDER BY \"i\" is ambiguous");
  EXPECT_EQ(Message("SELECT i FROM t LIMIT -1"), "LIMIT must not be negative");
  EXPECT_EQ(Message("SELECT i FROM t LIMIT i"), "argument of LIMIT must be a constant");
  EXPECT_EQ(Show("SELECT i FROM t LIMIT NULL"), "from t\noutput i = t.i : INTEGER?\n");
}

// ---- Errors: what, where, and a hint

TEST_F(BindTest, UnknownNames) {
  EXPECT_EQ(Error("SELECT nane FROM u"), R"(ERROR:  column "nane" does not exist
LINE 1: SELECT nane FROM u
               ^
HINT:  Perhaps you meant column "name".)");
  EXPECT_EQ(Error("SELECT u.nam\nFROM u"), R"(ERROR:  column "u.nam" does not exist
LINE 1: SELECT u.nam
               ^
HINT:  Perhaps you meant column "name".)");
  EXPECT_EQ(Error("SELECT zebra FROM u"), R"(ERROR:  column "zebra" does not exist
LINE 1: SELECT zebra FROM u
               ^)");
  AddTable("CREATE TABLE lineorder (lo_revenue INTEGER)");
  EXPECT_EQ(Error("SELECT\n  sum(lo_revenu)\nFROM lineorder"), R"(ERROR:  column "lo_revenu" does not exist
LINE 2:   sum(lo_revenu)
              ^
HINT:  Perhaps you meant column "lo_revenue".)");
  EXPECT_EQ(Error("SELECT 1 FROM line_order"), R"(ERROR:  table "line_order" does not exist
LINE 1: SELECT 1 FROM line_order
                      ^
HINT:  Perhaps you meant table "lineorder".)");
  EXPECT_EQ(Error("SELECT lineoder.x FROM lineorder"), R"(ERROR:  missing FROM-clause entry for table "lineoder"
LINE 1: SELECT lineoder.x FROM lineorder
               ^
HINT:  Perhaps you meant table "lineorder".)");
  EXPECT_EQ(Error("SELECT u.x FROM u AS q"), R"(ERROR:  invalid reference to FROM-clause entry for table "u"
LINE 1: SELECT u.x FROM u AS q
               ^
HINT:  Perhaps you meant the table alias "q".)");
  EXPECT_EQ(Error("SELECT uper(v) FROM t"), R"(ERROR:  function uper(VARCHAR(10)) does not exist
LINE 1: SELECT uper(v) FROM t
               ^
HINT:  Perhaps you meant function "upper".)");
  EXPECT_EQ(Error("SELECT i::intger FROM t"), R"(ERROR:  type "intger" does not exist
LINE 1: SELECT i::intger FROM t
                  ^
HINT:  Perhaps you meant type "integer".)");
  EXPECT_EQ(Error("SELECT extract(yeer FROM day) FROM t"), R"(ERROR:  unit "yeer" is not recognized
LINE 1: SELECT extract(yeer FROM day) FROM t
                       ^
HINT:  Perhaps you meant "year".)");
}

TEST_F(BindTest, ErrorsPointAtTheirPlace) {
  EXPECT_EQ(Error("SELECT i FROM t, u"), R"(ERROR:  column reference "i" is ambiguous
LINE 1: SELECT i FROM t, u
               ^)");
  EXPECT_EQ(Error("SELECT txt + i FROM t"), R"(ERROR:  operator does not exist: TEXT + INTEGER
LINE 1: SELECT txt + i FROM t
                   ^
HINT:  No operator matches the given argument types. You might need to add explicit type casts.)");
  EXPECT_EQ(Error("SELECT s, i FROM t GROUP BY s"),
            R"(ERROR:  column "t.i" must appear in the GROUP BY clause or be used in an aggregate function
LINE 1: SELECT s, i FROM t GROUP BY s
                  ^)");
  EXPECT_EQ(Error("SELECT i FROM t WHERE sum(i) > 1"), R"(ERROR:  aggregate functions are not allowed in WHERE
LINE 1: SELECT i FROM t WHERE sum(i) > 1
                              ^)");
  EXPECT_EQ(Error("SELECT i FROM t WHERE i"), R"(ERROR:  argument of WHERE must be type BOOLEAN, not type INTEGER
LINE 1: SELECT i FROM t WHERE i
                              ^)");
  EXPECT_EQ(Error("SELECT i FROM t WHERE flag AND i"), R"(ERROR:  argument of AND must be type BOOLEAN, not type INTEGER
LINE 1: SELECT i FROM t WHERE flag AND i
                                       ^)");
  EXPECT_EQ(Error("SELECT 'h\xC3\xA9', 2147483647 + 1"),
            "ERROR:  integer out of range\nLINE 1: SELECT 'h\xC3\xA9', 2147483647 + 1\n"
            "                                ^");
  EXPECT_EQ(Error("SELECT 1 FROM t WHERE day = '1998-13-01'"),
            R"(ERROR:  value "1998-13-01" is out of range for type date
LINE 1: SELECT 1 FROM t WHERE day = '1998-13-01'
                                    ^)");
  EXPECT_EQ(Error("SELECT t.i FROM t JOIN u ON q.x = 1 JOIN u AS q ON true"),
            R"(ERROR:  missing FROM-clause entry for table "q"
LINE 1: SELECT t.i FROM t JOIN u ON q.x = 1 JOIN u AS q ON true
                                    ^)");
  EXPECT_EQ(Error("SELECT t.i FROM t, u JOIN u AS q ON t.i = q.x"),
            R"(ERROR:  invalid reference to FROM-clause entry for table "t"
LINE 1: SELECT t.i FROM t, u JOIN u AS q ON t.i = q.x
                                            ^
HINT:  There is an entry for table "t", but it cannot be referenced from this part of the query.)");
  EXPECT_EQ(Error("SELECT 1 FROM t, t"), R"(ERROR:  table name "t" specified more than once
LINE 1: SELECT 1 FROM t, t
                         ^
HINT:  Give one of them an alias.)");
}

TEST_F(BindTest, SyntaxErrors) {
  EXPECT_EQ(Error("SELECT i FROM FROM t"), R"(ERROR:  syntax error at or near "FROM"
LINE 1: SELECT i FROM FROM t
                      ^)");
  EXPECT_EQ(Error("SELECT 1 +  \n"), R"(ERROR:  syntax error at end of input
LINE 1: SELECT 1 +  
                  ^)");
  EXPECT_EQ(Error("SELECT '\xC3\xA9\xC3\xA9' 5"),
            "ERROR:  syntax error at or near \"5\"\nLINE 1: SELECT '\xC3\xA9\xC3\xA9' 5\n                    ^");
  EXPECT_EQ(Message("SELECT 'abc"), "unterminated quoted string at or near \"'abc\"");
  EXPECT_EQ(Message("SELECT 'abc\nde\nf"), "unterminated quoted string at or near \"'abc...\"");
  EXPECT_EQ(Error("SELECT 1 /* a /* b */ c"), R"(ERROR:  unterminated /* comment at or near "/* a /* b */ c"
LINE 1: SELECT 1 /* a /* b */ c
                 ^
HINT:  Comments nest: each /* needs a */ of its own.)");
  EXPECT_EQ(Error(""), "ERROR:  no statement");
  EXPECT_EQ(Error(" -- nothing\n ; "), "ERROR:  no statement");
  EXPECT_EQ(Message("SELECT 1;"), "no error");
  EXPECT_EQ(Error("SELECT 1;  SELECT 2"), R"(ERROR:  only one statement is expected here
LINE 1: SELECT 1;  SELECT 2
                   ^)");
  EXPECT_EQ(Error("SELECT '\xFF'"), "ERROR:  statement is not valid UTF-8\nLINE 1: SELECT '\xFF'\n                ^");
  EXPECT_EQ(Message(std::string_view("SELECT 1\0", 9)), "statement holds a NUL byte");
}

// Where the caret of an error in a set operation is: what follows it.
TEST_F(BindTest, ErrorsOfSetOperationsNameThePlace) {
  struct Case {
    const char* sql;
    const char* message;
    const char* place;
  };
  const Case cases[] = {
      {"SELECT 1, 2 UNION SELECT 1, 2, v FROM t", "each arm of UNION must have the same number of columns: 2 and 3",
       "v FROM"},
      {"SELECT 1, 2 EXCEPT ALL SELECT i FROM t", "each arm of EXCEPT must have the same number of columns: 2 and 1",
       "i FROM"},
      {"SELECT 1 UNION ALL SELECT 2 UNION ALL VALUES (3), (4, 5)", "VALUES lists must all be the same length", "4, 5"},
      {"SELECT 1 INTERSECT VALUES (3, i)", "column \"i\" does not exist", "i)"},
      {"VALUES (1), (2, 3)", "VALUES lists must all be the same length", "2, 3"},
      {"SELECT i FROM t UNION SELECT s FROM t UNION SELECT d FROM t UNION SELECT true",
       "UNION types DECIMAL(12,2) and BOOLEAN cannot be matched", "true"},
      {"SELECT i FROM t INTERSECT SELECT 'x'", "invalid input syntax for type integer: \"x\"", "'x'"},
      {"SELECT i FROM t UNION SELECT i FROM t ORDER BY i + 1",
       "ORDER BY of UNION takes names and positions of its columns only", "+ 1"},
      {"SELECT i FROM t EXCEPT SELECT s FROM t ORDER BY s", "column \"s\" does not exist", "s"},
      {"SELECT i FROM t EXCEPT SELECT i FROM t ORDER BY 2", "ORDER BY position 2 is not in select list", "2"},
      {"WITH q AS (SELECT 1) SELECT * FROM t, (SELECT t.i UNION SELECT 2) AS v",
       "invalid reference to FROM-clause entry for table \"t\"", "t.i "},
      {"SELECT (SELECT max(k) FROM (VALUES (t.i), (t.v)) AS v(k)) FROM t",
       "VALUES types INTEGER and VARCHAR(10) cannot be matched", "t.v)"},
      {"VALUES (sum(1))", "aggregate functions are not allowed in VALUES", "sum(1)"},
      {"VALUES (1, DEFAULT)", "DEFAULT here is not supported", "DEFAULT"},
      {"SELECT 1 INTO z UNION SELECT 2", "SELECT INTO is not supported", "INTO"},
      {"SELECT 1 UNION SELECT 2 FOR UPDATE", "FOR UPDATE and FOR SHARE are not supported", "FOR UPDATE"},
  };
  for (const Case& c : cases) {
    const Result<Statement> bound = BindText(c.sql);
    ASSERT_FALSE(bound.ok()) << c.sql;
    EXPECT_EQ(bound.status().message(), c.message) << c.sql;
    ASSERT_GE(bound.status().position(), 0) << c.sql;
    EXPECT_TRUE(std::string_view(c.sql).substr(static_cast<size_t>(bound.status().position())).starts_with(c.place))
        << c.sql << " at " << bound.status().position();
  }
}

struct UnsupportedCase {
  const char* sql;
  const char* feature;
  const char* place;  // where the caret is: what follows it
};

TEST_F(BindTest, SetOperationsOfManyColumns) {
  std::string arm = "SELECT 0";
  for (int i = 1; i < 4096; ++i) arm += ", " + std::to_string(i);
  const std::string wide = arm + ", 4096";
  for (const char* op : {" UNION ", " EXCEPT ", " INTERSECT ALL ", " UNION ALL "}) {
    EXPECT_TRUE(BindText(arm + op + arm).ok()) << op;
    const Result<Statement> bound = BindText(wide + op + wide);
    ASSERT_FALSE(bound.ok()) << op;
    EXPECT_NE(bound.status().message().find("of more than 4096 columns is not supported"), std::string::npos);
    EXPECT_EQ(static_cast<size_t>(bound.status().position()), wide.size() - 4);
  }
}

TEST_F(BindTest, ParametersStandInPreparedStatements) {
  const Result<Statement> bound = BindText("SELECT $1");
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.status().code(), ErrorCode::kSql);
  EXPECT_EQ(bound.status().message(), "there is no parameter $1");
  EXPECT_EQ(bound.status().position(), 7);
}

TEST_F(BindTest, ASchemaThatIsNotThereIsNamed) {
  const Result<Statement> bound = BindText("SELECT i FROM other.t");
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.status().message(), "schema \"other\" does not exist");
  EXPECT_EQ(bound.status().position(), 14);
}

TEST_F(BindTest, UnsupportedFeaturesAreNamed) {
  const UnsupportedCase cases[] = {
      {"INSERT INTO u (x) VALUES (DEFAULT), ((SELECT 1))", "a subquery in VALUES", "(SELECT 1)"},
      {"SELECT ARRAY[ARRAY[i]] FROM t", "an array of arrays", "ARRAY"},
      {"SELECT i FROM t WHERE (i, s) < ALL (SELECT 1, 2)", "a row value with this operator", "(i, s)"},
      {"SELECT * FROM unnest(1, 2)", "unnest of several arrays", "unnest"},
      {"SELECT i FROM t FOR UPDATE", "FOR UPDATE and FOR SHARE", "FOR UPDATE"},
      {"SELECT i FROM t TABLESAMPLE reservoir (10%)", "a RESERVOIR sample of a percentage", "10%"},
      {"SELECT i INTO z FROM t", "SELECT INTO", "INTO"},
      {"CREATE TABLE z AS EXECUTE q", "CREATE TABLE AS of a statement other than SELECT", "z AS"},
      {"SELECT (1, 2) = 3", "a row value", "(1, 2)"},
      {"SELECT v COLLATE \"de_DE\" FROM t", "COLLATE", "COLLATE"},
      {"SELECT moment AT TIME ZONE v FROM t", "a time zone that is not a constant text", "v FROM"},
      {"SELECT current_time(3)", "CURRENT_TIME", "current_time"},
      {"SELECT i::timetz FROM t", "type TIME WITH TIME ZONE", "timetz"},
      {"CLUSTER t", "CLUSTER", "CLUSTER"},
      {"BEGIN", "BEGIN, COMMIT or ROLLBACK here", "BEGIN"},
      {"CREATE RECURSIVE VIEW z (n) AS SELECT 1", "CREATE RECURSIVE VIEW", "RECURSIVE"},
      {"CREATE UNIQUE INDEX z ON t (i) WHERE i > 0", "CREATE UNIQUE INDEX with WHERE", "CREATE"},
      {"PRAGMA x", "PRAGMA x", "PRAGMA"},
      {"INSTALL x", "INSTALL", "INSTALL"},
      {"INSERT OR FAIL INTO t VALUES (1)", "INSERT OR FAIL or OR ROLLBACK", "INSERT"},
      {"SHOW COLUMNS FROM t", "SHOW COLUMNS", "SHOW"},
      {"SELECT i FROM t LIMIT 2, i", "LIMIT offset, count", "LIMIT"},
      {"CREATE MATERIALIZED VIEW z TABLESPACE s AS SELECT 1", "TABLESPACE", "z TABLE"},
      {"ALTER TABLE t INHERIT u", "INHERIT", "ALTER"},
      {"ALTER TABLE t ADD FOREIGN KEY (i) REFERENCES u (i) NOT VALID", "NOT VALID", "FOREIGN"},
      {"CREATE UNLOGGED TABLE z (a INT)", "an unlogged table", "z (a"},
      {"CREATE TABLE z (a DATE DEFAULT (SELECT 1))", "a subquery in DEFAULT", "(SELECT"},
      {"CREATE TABLE z (a INT CHECK (a > random()))", "random() in a CHECK constraint", "> random"},
      {"CREATE TABLE z (a INT REFERENCES t (i) ON DELETE SET NULL (a))", "a list of columns after ON DELETE SET",
       "REFERENCES"},
      {"CREATE TABLE z (a INT[])", "array types", "INT[]"},
      {"INSERT INTO u VALUES (1) ON CONFLICT (lower(i::text)) DO NOTHING", "an expression in ON CONFLICT (...)",
       "(lower"},
      {"COPY t FROM 'x' (FORMAT text)", "COPY format \"text\"", "FORMAT"},
      {"COPY t FROM PROGRAM 'x'", "COPY with PROGRAM", "PROGRAM"},
  };
  for (const UnsupportedCase& c : cases) {
    const Result<Statement> bound = BindText(c.sql);
    ASSERT_FALSE(bound.ok()) << c.sql;
    EXPECT_EQ(bound.status().code(), ErrorCode::kUnsupported) << c.sql;
    const std::string verb =
        bound.status().message().ends_with(" are not supported") ? " are not supported" : " is not supported";
    EXPECT_EQ(bound.status().message(), c.feature + verb) << c.sql;
    ASSERT_GE(bound.status().position(), 0) << c.sql;
    EXPECT_TRUE(std::string_view(c.sql).substr(static_cast<size_t>(bound.status().position())).starts_with(c.place))
        << c.sql << " at " << bound.status().position();
  }
}

}  // namespace
}  // namespace tessera
