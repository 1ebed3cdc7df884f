// Unit tests of server/'s pure parts: messages, values, authentication; and messages that are none.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/authentication.h"
#include "server/messages.h"
#include "server/row_sender.h"
#include "server/wire_values.h"
#include "session/copy_text.h"

namespace tessera::server {
namespace {

using namespace std::string_literals;

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char c : bytes) out += fmt::format("{:02x}", c);
  return out;
}

TEST(Messages, FramesAreCutAtTheirLength) {
  const std::string query = "Q\0\0\0\x0dSELECT 1\0"s;
  for (size_t size = 0; size < query.size(); ++size) {
    const Result<size_t> end = FrameEnd(std::string_view(query).substr(0, size), false, kMostBytes);
    ASSERT_TRUE(end.ok());
    EXPECT_EQ(*end, 0u) << size;
  }
  const Result<size_t> end = FrameEnd(query + "Q", false, kMostBytes);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, query.size());
  const Message message = TakeFrame(query, false);
  EXPECT_EQ(message.type, 'Q');
  EXPECT_EQ(message.body, "SELECT 1\0"s);
  // The length counts itself.
  EXPECT_FALSE(FrameEnd("Q\0\0\0\x03"s, false, kMostBytes).ok());
  EXPECT_FALSE(FrameEnd("Q\xff\xff\xff\xff"s, false, kMostBytes).ok());
  EXPECT_FALSE(FrameEnd("\0\0\x27\x11"s, true, kMostBeforeLogin).ok());
}

TEST(Messages, Startup) {
  Result<StartupMessage> start = ReadStartup("\0\3\0\0user\0me\0database\0db\0\0"s);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->parameters, (std::vector<std::pair<std::string, std::string>>{{"user", "me"}, {"database", "db"}}));
  start = ReadStartup("\x04\xd2\x16\x2f"s);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->kind, StartupMessage::Kind::kTls);
  start = ReadStartup("\x04\xd2\x16\x2e\0\0\0\7\0\0\0\x09"s);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->kind, StartupMessage::Kind::kCancel);
  EXPECT_EQ(start->process, 7);
  EXPECT_EQ(start->key, 9);
  EXPECT_FALSE(ReadStartup("\0\2\0\0"s).ok());
  EXPECT_FALSE(ReadStartup("\0\3\0\0user\0me"s).ok());
}

TEST(Messages, ParseBindAndTheirErrors) {
  const Result<ParseMessage> parse = ReadParse("s\0SELECT $1\0\0\1\0\0\0\x17"s);
  ASSERT_TRUE(parse.ok());
  EXPECT_EQ(parse->name, "s");
  EXPECT_EQ(parse->types, std::vector<int32_t>{23});
  EXPECT_FALSE(ReadParse("s\0SELECT $1\0\0\2\0\0\0\x17"s).ok());
  EXPECT_FALSE(ReadParse("s\0SELECT $1\0\0\0x"s).ok());
  const Result<BindMessage> bind = ReadBind("p\0s\0\0\1\0\1\0\2\0\0\0\2xy\xff\xff\xff\xff\0\0"s);
  ASSERT_TRUE(bind.ok());
  EXPECT_EQ(bind->formats, std::vector<int16_t>{1});
  ASSERT_EQ(bind->values.size(), 2u);
  EXPECT_EQ(bind->values[0], "xy");
  EXPECT_EQ(bind->values[1], std::nullopt);
  EXPECT_TRUE(IsBinary(bind->formats, 1));
  EXPECT_FALSE(ReadBind("p\0s\0\0\0\0\1\0\0\0\5xy\0\0"s).ok());
  EXPECT_FALSE(ReadBind("p\0s\0\0\0\0\1\xff\xff\xff\xfe\0\0"s).ok());
  EXPECT_FALSE(CheckFormats({0, 1}, 3).ok());
  EXPECT_FALSE(CheckFormats({2}, 3).ok());
}

TEST(Messages, PositionsCountCharacters) {
  const Report report = ReportOf(SqlError("no", 3), "SELECT 1; \xC3\xBC\xC3\xBCx", 10);
  EXPECT_EQ(report.position, 13);
  MessageWriter out;
  WriteReport({"ERROR", "42601", "no", "", 13}, &out);
  EXPECT_EQ(out.Take(), "E\0\0\0\x22SERROR\0VERROR\0C42601\0Mno\0P13\0\0"s);
}

/// Bytes of valid messages, changed here and there, are read or refused, and nothing else.
TEST(Messages, MutatedBytesAreReadOrRefused) {
  const std::vector<std::string> seeds = {"\0\3\0\0user\0me\0database\0db\0\0"s,
                                          "s\0SELECT $1\0\0\1\0\0\0\x17"s,
                                          "p\0s\0\0\1\0\1\0\2\0\0\0\2xy\xff\xff\xff\xff\0\0"s,
                                          "Sname\0"s,
                                          "p\0\0\0\0\5"s,
                                          "\x04\xd2\x16\x2e\0\0\0\7\0\0\0\x09"s,
                                          "\0\2\0\1\0\0\0\2\0\1\x26\x94"s};
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  size_t read = 0, refused = 0;
  const auto note = [&](bool ok) { ++(ok ? read : refused); };
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes = seeds[below(seeds.size())];
    for (size_t changes = below(4); changes > 0; --changes) {
      const size_t at = below(bytes.size() + 1);
      switch (below(4)) {
        case 0:
          bytes.resize(at);
          break;
        case 1:
          bytes.insert(at, 1, static_cast<char>(below(256)));
          break;
        case 2:
          bytes.insert(at, std::string(4, below(2) == 0 ? '\xff' : '\x7f'));
          break;
        default:
          if (at < bytes.size()) bytes[at] = static_cast<char>(below(256));
      }
    }
    note(ReadStartup(bytes).ok());
    note(ReadParse(bytes).ok());
    note(ReadBind(bytes).ok());
    note(ReadName(bytes).ok());
    note(ReadExecute(bytes).ok());
    for (const int32_t oid : {0, 16, 20, 23, 701, 1082, 1186, 1700, 2950, 17, 25, 99999})
      note(ReadParameter(bytes, i % 2 == 0, oid).ok());
    const Result<size_t> end = FrameEnd(bytes, i % 2 == 0, kMostBytes);
    note(end.ok());
    if (end.ok() && *end > 0) {
      ASSERT_LE(*end, bytes.size());
      (void)TakeFrame(std::string_view(bytes).substr(0, *end), i % 2 == 0);
    }
    ScramExchange scram(nullptr);
    if (i % 100 == 0) note(scram.First(bytes).ok());
    note(scram.Final(bytes).ok());
    note(ReadVerifier(bytes).ok());
  }
  EXPECT_GT(read, 100'000u);
  EXPECT_GT(refused, 100'000u);
}

/// A value of the type in PostgreSQL's binary form, in hexadecimal digits.
std::string Binary(const std::string& text, const SqlType& type) {
  const Result<Value> value = ParseValue(text, type);
  EXPECT_TRUE(value.ok()) << text;
  ColumnVector column;
  column.type = type;
  column.Append(*value);
  MessageWriter out;
  AppendField(column, 0, true, &out);
  return Hex(out.Take());
}

TEST(WireValues, BinaryForms) {
  // As PostgreSQL 15 sends them (SELECT encode(numeric_send(x), 'hex') and its kin).
  EXPECT_EQ(Binary("0", SqlType::Decimal(8, 2)), "0000000000000002");
  EXPECT_EQ(Binary("12.50", SqlType::Decimal(8, 2)), "0002000000000002000c1388");
  EXPECT_EQ(Binary("-123456789.001", SqlType::Decimal(12, 3)), "0004000240000003000109291a85000a");
  EXPECT_EQ(Binary("10000", SqlType::Decimal(10, 0)), "00010001000000000001");
  EXPECT_EQ(Binary("0.0001", SqlType::Decimal(10, 4)), "0001ffff000000040001");
  EXPECT_EQ(Binary("2000-01-02", SqlType::Of(TypeId::kDate)), "00000001");
  EXPECT_EQ(Binary("1999-12-31 23:59:59", SqlType::Of(TypeId::kTimestamp)), "fffffffffff0bdc0");
  EXPECT_EQ(Binary("1 month 2 days 00:00:03", SqlType::Of(TypeId::kInterval)), "00000000002dc6c00000000200000001");
  EXPECT_EQ(Binary("12345678-1234-5678-1234-567812345678", SqlType::Of(TypeId::kUuid)),
            "12345678123456781234567812345678");
  EXPECT_EQ(Binary("1.5", SqlType::Of(TypeId::kReal)), "3fc00000");
  EXPECT_EQ(Binary("true", SqlType::Of(TypeId::kBoolean)), "01");
  EXPECT_EQ(Binary("-2", SqlType::Of(TypeId::kSmallint)), "fffe");
}

TEST(WireValues, TypesByTheirNumbers) {
  EXPECT_EQ(WireTypeOf(SqlType::Decimal(8, 2)).oid, 1700);
  EXPECT_EQ(WireTypeOf(SqlType::Decimal(8, 2)).modifier, (8 << 16 | 2) + 4);
  EXPECT_EQ(WireTypeOf(SqlType::Text(5)).oid, 1043);
  EXPECT_EQ(WireTypeOf(SqlType::Text(5)).modifier, 9);
  EXPECT_EQ(WireTypeOf(SqlType::Of(TypeId::kNull)).oid, 25);
  for (const TypeId id : {TypeId::kBoolean, TypeId::kSmallint, TypeId::kInteger, TypeId::kBigint, TypeId::kReal,
                          TypeId::kDouble, TypeId::kDate, TypeId::kTimestamp, TypeId::kText, TypeId::kInterval,
                          TypeId::kTime, TypeId::kUuid, TypeId::kTimestampTz, TypeId::kBytea}) {
    EXPECT_EQ(TypeOfOid(WireTypeOf(SqlType::Of(id)).oid), SqlType::Of(id));
  }
  EXPECT_EQ(TypeOfOid(0), std::nullopt);
  EXPECT_EQ(TypeOfOid(705), std::nullopt);
}

TEST(Scram, VerifiersAndWrongProofs) {
  Result<ScramVerifier> verifier = MakeVerifier("pencil");
  ASSERT_TRUE(verifier.ok());
  const Result<ScramVerifier> again = ReadVerifier(VerifierText(*verifier));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->salt, verifier->salt);
  EXPECT_EQ(again->stored_key, verifier->stored_key);
  EXPECT_EQ(again->server_key, verifier->server_key);
  for (const char* wrong : {"", "SCRAM-SHA-256$4096:x$y:z", "md5abc", "SCRAM-SHA-256$0:W22ZaJ0SNY7soEsUEjb6gQ==$a:b"})
    EXPECT_FALSE(ReadVerifier(wrong).ok()) << wrong;
  Role role;
  role.verifier = *verifier;
  ScramExchange exchange(&role);
  EXPECT_FALSE(exchange.First("p=tls-unique,,n=,r=x").ok());
  const Result<std::string> first = exchange.First("n,,n=,r=abc");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->starts_with("r=abc"));
  // A proof of something else.
  const std::string nonce = first->substr(2, first->find(',') - 2);
  const Result<std::optional<std::string>> last =
      exchange.Final("c=biws,r=" + nonce + ",p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
  ASSERT_TRUE(last.ok());
  EXPECT_FALSE(last->has_value());
  EXPECT_FALSE(exchange.Final("c=biws,r=other,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").ok());
}

std::string AsCsv(const std::vector<std::string>& pieces, const CopyTextFormat& format = {}) {
  CopyTextReader reader(format);
  std::string csv;
  for (const std::string& piece : pieces) reader.Read(piece, &csv);
  reader.End(&csv);
  return csv;
}

TEST(CopyText, BecomesCsv) {
  EXPECT_EQ(AsCsv({"1\ta\n2\t\\N\n"}), "1\ta\n2\t\\N\n");
  // Quotes stand around what CSV or the text format writes in another way, and where an empty field could be taken for none.
  EXPECT_EQ(AsCsv({"a,b\tc\n\t \n\"\t\n"}), "a,b\tc\n\t \n\"\"\"\"\t\"\"\n");
  EXPECT_EQ(AsCsv({"a\t\n"}), "a\t\"\"\n");
  // However it is cut, and whatever ends it.
  const std::string text = "a\\tb\tc\\\\\\\nd\r\n\\x41\\102\t\"\"\nplain\t \n\\N\t\\\\N";
  const std::string csv = "\"a\tb\"\t\"c\\\nd\"\n\"AB\"\t\"\"\"\"\"\"\nplain\t \n\\N\t\"\\N\"\n";
  EXPECT_EQ(AsCsv({text}), csv);
  for (size_t cut = 0; cut <= text.size(); ++cut) EXPECT_EQ(AsCsv({text.substr(0, cut), text.substr(cut)}), csv) << cut;
  EXPECT_EQ(AsCsv({"a\n\\.\nb\n"}), "a\n");
  EXPECT_EQ(AsCsv({"\n"}), "\"\"\n");
  EXPECT_EQ(AsCsv({"a\n\nb\n"}), "a\n\"\"\nb\n");
  EXPECT_EQ(AsCsv({""}), "");
}

TEST(CopyText, HasTheDelimiterOfTheCsv) {
  EXPECT_EQ(AsCsv({"a|nil|b\tc|\"c\n"}, {'|', "nil"}), "a|nil|b\tc|\"\"\"c\"\n");
  EXPECT_EQ(AsCsv({"1,,x,\n\\N,2,\"\",\n"}, {',', ""}), "1,,x,\n\"N\",2,\"\"\"\"\"\",\n");
  // CSV cannot have these.
  EXPECT_EQ(AsCsv({"a\"\\N\"b,c\"\n"}, {'"', "\\N"}), "a,,\"b,c\",\"\"\n");
  EXPECT_EQ(AsCsv({"a\t\"\t\n"}, {'\t', "\""}), "a,,\"\"\n");
  for (const auto& [text, delimiter, null] :
       {std::tuple('\t', '\t', "\\N"), std::tuple('|', '|', ""), std::tuple('"', ',', "")}) {
    CopyFormat format;
    CopyTextReader({text, null}).SetFormat(&format);
    EXPECT_EQ(format.delimiter, delimiter);
    EXPECT_EQ(format.null_string, null);
  }
}

}  // namespace
}  // namespace tessera::server
