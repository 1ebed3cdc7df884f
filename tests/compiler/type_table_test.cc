// Walks vm/program/types.def and the calls of compiler/query/functions.def: what each operator gives for each pair of column types,
// and that each row of the tables is reached.
#include <set>
#include <string>
#include <vector>

#include "compiler/query/type_rules.h"
#include "tests/compiler/bind_fixture.h"

namespace tessera {
namespace {

class TypeTableTest : public BindTest {
 protected:
  /// The types of `left symbol right` for all pairs of columns, a line for each left column; "-": there is no such
  /// operator.
  std::string Table(const std::string& symbol) const {
    std::string out = "\n";
    for (const char* left : {"s", "i", "b", "d", "w", "r", "f", "day", "moment", "v", "flag"}) {
      out += std::string(left) + ":";
      for (const char* right : {"s", "i", "b", "d", "w", "r", "f", "day", "moment", "v", "flag"}) {
        const std::string type = TypeOf(std::string(left) + " " + symbol + " " + right);
        out += " " + (type == "DOUBLE PRECISION" ? "DOUBLE" : type);
      }
      out += "\n";
    }
    return out;
  }
};

TEST_F(TypeTableTest, Sums) {
  EXPECT_EQ(Table("+"), R"(
s: SMALLINT INTEGER BIGINT DECIMAL(13,2) DECIMAL(31,4) DOUBLE DOUBLE DATE - - -
i: INTEGER INTEGER BIGINT DECIMAL(13,2) DECIMAL(31,4) DOUBLE DOUBLE DATE - - -
b: BIGINT BIGINT BIGINT DECIMAL(22,2) DECIMAL(31,4) DOUBLE DOUBLE DATE - - -
d: DECIMAL(13,2) DECIMAL(13,2) DECIMAL(22,2) DECIMAL(13,2) DECIMAL(31,4) DOUBLE DOUBLE - - - -
w: DECIMAL(31,4) DECIMAL(31,4) DECIMAL(31,4) DECIMAL(31,4) DECIMAL(31,4) DOUBLE DOUBLE - - - -
r: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE REAL DOUBLE - - - -
f: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
day: DATE DATE DATE - - - - - - - -
moment: - - - - - - - - - - -
v: - - - - - - - - - - -
flag: - - - - - - - - - - -
)");
}

TEST_F(TypeTableTest, Differences) {
  EXPECT_EQ(Table("-"), R"(
s: SMALLINT INTEGER BIGINT DECIMAL(13,2) DECIMAL(31,4) DOUBLE DOUBLE - - - -
i: INTEGER INTEGER BIGINT DECIMAL(13,2) DECIMAL(31,4) DOUBLE DOUBLE - - - -
b: BIGINT BIGINT BIGINT DECIMAL(22,2) DECIMAL(31,4) DOUBLE DOUBLE - - - -
d: DECIMAL(13,2) DECIMAL(13,2) DECIMAL(22,2) DECIMAL(13,2) DECIMAL(31,4) DOUBLE DOUBLE - - - -
w: DECIMAL(31,4) DECIMAL(31,4) DECIMAL(31,4) DECIMAL(31,4) DECIMAL(31,4) DOUBLE DOUBLE - - - -
r: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE REAL DOUBLE - - - -
f: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
day: DATE DATE DATE - - - - INTEGER INTERVAL - -
moment: - - - - - - - INTERVAL INTERVAL - -
v: - - - - - - - - - - -
flag: - - - - - - - - - - -
)");
}

TEST_F(TypeTableTest, Products) {
  EXPECT_EQ(Table("*"), R"(
s: SMALLINT INTEGER BIGINT DECIMAL(17,2) DECIMAL(35,4) DOUBLE DOUBLE - - - -
i: INTEGER INTEGER BIGINT DECIMAL(22,2) DECIMAL(38,4) DOUBLE DOUBLE - - - -
b: BIGINT BIGINT BIGINT DECIMAL(31,2) DECIMAL(38,4) DOUBLE DOUBLE - - - -
d: DECIMAL(17,2) DECIMAL(22,2) DECIMAL(31,2) DECIMAL(24,4) DECIMAL(38,6) DOUBLE DOUBLE - - - -
w: DECIMAL(35,4) DECIMAL(38,4) DECIMAL(38,4) DECIMAL(38,6) DECIMAL(38,8) DOUBLE DOUBLE - - - -
r: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE REAL DOUBLE - - - -
f: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
day: - - - - - - - - - - -
moment: - - - - - - - - - - -
v: - - - - - - - - - - -
flag: - - - - - - - - - - -
)");
}

TEST_F(TypeTableTest, Quotients) {
  EXPECT_EQ(Table("/"), R"(
s: SMALLINT INTEGER BIGINT DOUBLE DOUBLE DOUBLE DOUBLE - - - -
i: INTEGER INTEGER BIGINT DOUBLE DOUBLE DOUBLE DOUBLE - - - -
b: BIGINT BIGINT BIGINT DOUBLE DOUBLE DOUBLE DOUBLE - - - -
d: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
w: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
r: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE REAL DOUBLE - - - -
f: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
day: - - - - - - - - - - -
moment: - - - - - - - - - - -
v: - - - - - - - - - - -
flag: - - - - - - - - - - -
)");
}

TEST_F(TypeTableTest, Remainders) {
  EXPECT_EQ(Table("%"), R"(
s: SMALLINT INTEGER BIGINT DECIMAL(7,2) DECIMAL(9,4) DOUBLE DOUBLE - - - -
i: INTEGER INTEGER BIGINT DECIMAL(12,2) DECIMAL(14,4) DOUBLE DOUBLE - - - -
b: BIGINT BIGINT BIGINT DECIMAL(12,2) DECIMAL(23,4) DOUBLE DOUBLE - - - -
d: DECIMAL(7,2) DECIMAL(12,2) DECIMAL(12,2) DECIMAL(12,2) DECIMAL(14,4) DOUBLE DOUBLE - - - -
w: DECIMAL(9,4) DECIMAL(14,4) DECIMAL(23,4) DECIMAL(14,4) DECIMAL(30,4) DOUBLE DOUBLE - - - -
r: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
f: DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE DOUBLE - - - -
day: - - - - - - - - - - -
moment: - - - - - - - - - - -
v: - - - - - - - - - - -
flag: - - - - - - - - - - -
)");
}

TEST_F(TypeTableTest, Concatenation) {
  EXPECT_EQ(Table("||"), R"(
s: - - - - - - - - - TEXT -
i: - - - - - - - - - TEXT -
b: - - - - - - - - - TEXT -
d: - - - - - - - - - TEXT -
w: - - - - - - - - - TEXT -
r: - - - - - - - - - TEXT -
f: - - - - - - - - - TEXT -
day: - - - - - - - - - TEXT -
moment: - - - - - - - - - TEXT -
v: TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT
flag: - - - - - - - - - TEXT -
)");
}

TEST_F(TypeTableTest, Comparisons) {
  const std::string expected = R"(
s: BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN - - - -
i: BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN - - - -
b: BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN - - - -
d: BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN - - - -
w: BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN - - - -
r: BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN - - - -
f: BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN BOOLEAN - - - -
day: - - - - - - - BOOLEAN BOOLEAN - -
moment: - - - - - - - BOOLEAN BOOLEAN - -
v: - - - - - - - - - BOOLEAN -
flag: - - - - - - - - - - BOOLEAN
)";
  for (const char* symbol : {"=", "<>", "<", "<=", ">", ">=", "is distinct from"})
    EXPECT_EQ(Table(symbol), expected) << symbol;
}

// ---- The rows

/// A type of each class.
const std::vector<SqlType>& AllTypes() {
  static const std::vector<SqlType> types = {SqlType::Of(TypeId::kBoolean),
                                             SqlType::Of(TypeId::kSmallint),
                                             SqlType::Of(TypeId::kInteger),
                                             SqlType::Of(TypeId::kBigint),
                                             SqlType::Decimal(9, 2),
                                             SqlType::Decimal(30, 4),
                                             SqlType::Of(TypeId::kReal),
                                             SqlType::Of(TypeId::kDouble),
                                             SqlType::Of(TypeId::kDate),
                                             SqlType::Of(TypeId::kTimestamp),
                                             SqlType::Of(TypeId::kTime),
                                             SqlType::Of(TypeId::kUuid),
                                             SqlType::Of(TypeId::kTimestampTz),
                                             SqlType::Of(TypeId::kBytea),
                                             SqlType::Text(),
                                             SqlType::Of(TypeId::kInterval),
                                             EnumSqlType({"mood", {"sad", "ok"}})};
  return types;
}

TEST(TypeRulesTest, EachOperatorRowIsReached) {
  int rows = 0;
#define TESSERA_OPERATOR(symbol, left, right, function, operands, result) ++rows;
#include "vm/program/types.def"
  std::set<int> reached;
  for (const char* symbol : {"+", "-", "*", "/", "%", "^", "&", "|", "#", "<<", ">>", "||"}) {
    for (const SqlType& l : AllTypes()) {
      for (const SqlType& r : AllTypes()) {
        if (const auto rule = FindOperator(symbol, l, r)) reached.insert(rule->row);
      }
    }
  }
  EXPECT_EQ(static_cast<int>(reached.size()), rows);
}

TEST(TypeRulesTest, EachFunctionRowIsFound) {
  for (const SqlType& type : AllTypes()) {
    const TypeClass c = ClassOf(type);
    FunctionRule rule;
    // A row's function may be found under an earlier row of that name and class, but never another function.
#define CALL(name, least, most, first, others, result)                                                   \
  if ((c & kClass##first) != 0) {                                                                        \
    std::vector<SqlType> args = {type};                                                                  \
    const SqlType other = (kClass##others & kClassInteger) != 0 ? SqlType::Of(TypeId::kInteger) : type;  \
    while (args.size() < (least)) args.push_back(other);                                                 \
    EXPECT_EQ(FindFunction(name, args, &rule), FunctionMatch::kFound) << name << " " << type.ToString(); \
    EXPECT_EQ(rule.function, expected) << name;                                                          \
  }
#define CALL3(name, least, most, first, second, third, result)                                              \
  if ((c & kClass##first) != 0) {                                                                           \
    const auto of = [&](TypeClass k) { return k == kClassInteger ? SqlType::Of(TypeId::kInteger) : type; }; \
    const std::vector<SqlType> args = {type, of(kClass##second), of(kClass##third)};                        \
    for (size_t n = least; n <= most; ++n) {                                                                \
      EXPECT_EQ(FindFunction(name, std::span(args.data(), n), &rule), FunctionMatch::kFound) << name;       \
      EXPECT_EQ(rule.function, expected) << name;                                                           \
    }                                                                                                       \
    const std::vector<SqlType> swapped = {type, of(kClass##third), of(kClass##second)};                     \
    EXPECT_EQ(FindFunction(name, swapped, &rule), FunctionMatch::kWrongArguments) << name;                  \
  }
#define FUNCTION(Name, Group, Form, Text, Binding, Translated, I, IX, F, W, T, Operands, Range, Errors, Nulls, \
                 Entries, Description, ...)                                                                    \
  {                                                                                                            \
    [[maybe_unused]] const Function expected = Function::k##Name;                                              \
    __VA_ARGS__                                                                                                \
  }
#include "compiler/query/functions.def"
  }
  FunctionRule rule;
  EXPECT_EQ(FindFunction("no_such", std::vector<SqlType>{SqlType::Text()}, &rule), FunctionMatch::kNoSuchName);
  EXPECT_EQ(FindFunction("upper", std::vector<SqlType>{SqlType::Of(TypeId::kDate)}, &rule),
            FunctionMatch::kWrongArguments);
}

TEST(TypeRulesTest, EachCastRowIsFound) {
  for (const SqlType& from : AllTypes()) {
    for (const SqlType& to : AllTypes()) {
      bool in_table = false;
#define TESSERA_CAST(f, t, context) \
  in_table = in_table || ((ClassOf(from) & kClass##f) != 0 && (ClassOf(to) & kClass##t) != 0);
#include "vm/program/types.def"
      EXPECT_EQ(FindCast(from, to) != CastContext::kNone, in_table || from == to)
          << from.ToString() << " to " << to.ToString();
    }
  }
}

TEST(TypeRulesTest, CastContexts) {
  const SqlType smallint = SqlType::Of(TypeId::kSmallint), bigint = SqlType::Of(TypeId::kBigint),
                real = SqlType::Of(TypeId::kReal);
  EXPECT_EQ(FindCast(smallint, bigint), CastContext::kImplicit);
  EXPECT_EQ(FindCast(bigint, smallint), CastContext::kAssignment);
  EXPECT_EQ(FindCast(SqlType::Decimal(5, 2), SqlType::Decimal(9, 4)), CastContext::kImplicit);
  EXPECT_EQ(FindCast(SqlType::Decimal(9, 4), SqlType::Decimal(9, 2)), CastContext::kAssignment);
  EXPECT_EQ(FindCast(SqlType::Decimal(9, 2), SqlType::Decimal(9, 4)), CastContext::kAssignment);
  EXPECT_EQ(FindCast(SqlType::Of(TypeId::kDouble), real), CastContext::kAssignment);
  EXPECT_EQ(FindCast(SqlType::Text(), real), CastContext::kExplicit);
  EXPECT_EQ(FindCast(SqlType::Of(TypeId::kDate), real), CastContext::kNone);
}

TEST(TypeRulesTest, CommonTypes) {
  const auto unify = [](const SqlType& a, const SqlType& b) {
    const auto t = UnifyTypes(a, b);
    const auto u = UnifyTypes(b, a);
    EXPECT_EQ(t.has_value(), u.has_value());
    if (!t || !u) return std::string("none");
    EXPECT_EQ(*t, *u);
    return t->ToString();
  };
  const SqlType integer = SqlType::Of(TypeId::kInteger);
  EXPECT_EQ(unify(integer, SqlType::Of(TypeId::kSmallint)), "INTEGER");
  EXPECT_EQ(unify(integer, SqlType::Decimal(5, 2)), "DECIMAL(12,2)");
  EXPECT_EQ(unify(SqlType::Decimal(38, 0), SqlType::Decimal(5, 2)), "DOUBLE PRECISION");
  EXPECT_EQ(unify(integer, SqlType::Of(TypeId::kReal)), "DOUBLE PRECISION");
  EXPECT_EQ(unify(SqlType::Of(TypeId::kReal), SqlType::Of(TypeId::kReal)), "REAL");
  EXPECT_EQ(unify(SqlType::Of(TypeId::kDate), SqlType::Of(TypeId::kTimestamp)), "TIMESTAMP");
  EXPECT_EQ(unify(SqlType::Text(5), SqlType::Text(7)), "VARCHAR(7)");
  EXPECT_EQ(unify(SqlType::Text(5), SqlType::Text()), "TEXT");
  EXPECT_EQ(unify(integer, SqlType::Text()), "none");
  EXPECT_EQ(unify(integer, SqlType::Of(TypeId::kBoolean)), "none");
}

}  // namespace
}  // namespace tessera
