// A connection that gets messages which are almost right: whatever comes, it answers in frames of the protocol, and neither
// fails nor forgets to be ready again.
//
// TESSERA_TRIALS says how many messages (20,000 without it), TESSERA_SEED which ones.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "server/connection.h"
#include "session/activity.h"
#include "session/engine.h"

namespace tessera::server {
namespace {

using namespace std::string_literals;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string Number(uint64_t v, int bytes) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(v >> shift);
  return out;
}

std::string SizedText(std::string_view text) { return Number(text.size(), 4) + std::string(text); }

/// Messages as clients send them: a type and a body.
std::vector<Message> Good() {
  std::vector<Message> all;
  const auto add = [&](char type, std::string body) { all.push_back({type, std::move(body)}); };
  for (const char* sql :
       {"SELECT 1", "SELECT a, b FROM t WHERE a < 3", "BEGIN", "COMMIT", "ROLLBACK; SELECT 1", "", ";;",
        "INSERT INTO t VALUES (1, 'x'); DELETE FROM t WHERE a > 5", "COPY t TO STDOUT", "COPY t FROM STDIN",
        "COPY (SELECT 1) TO STDOUT (FORMAT csv, HEADER)", "SELECT nothing", "SET timezone = 'UTC'", "SHOW ALL",
        "EXPLAIN SELECT * FROM t", "SELECT pid FROM tessera_sessions()", "DISCARD ALL", "SAVEPOINT s"})
    add('Q', std::string(sql) + '\0');
  for (const char* sql :
       {"SELECT $1::integer + 1", "SELECT * FROM t WHERE a = $1 AND b = $2", "INSERT INTO t VALUES ($1, $2)", ""})
    for (const char* name : {"", "p"}) add('P', name + "\0"s + sql + "\0"s + Number(1, 2) + Number(23, 4));
  add('P', "p\0SELECT 1::decimal(8,2), DATE '2024-01-01', 'x', NULL, TRUE, 1.5e0\0\0\0"s);
  for (const char* name : {"", "p"}) {
    add('B', "\0"s + name + "\0"s + Number(0, 2) + Number(1, 2) + SizedText("7") + Number(0, 2));
    add('B', "c\0"s + name + "\0"s + Number(1, 2) + Number(1, 2) + Number(2, 2) + SizedText(Number(7, 4)) +
                 Number(UINT32_MAX, 4) + Number(1, 2) + Number(1, 2));
    add('B', "\0"s + name + "\0"s + Number(0, 2) + Number(0, 2) + Number(0, 2));
    add('D', "S"s + name + "\0"s);
    add('C', "S"s + name + "\0"s);
  }
  for (const char* name : {"", "c"}) {
    add('D', "P"s + name + "\0"s);
    add('E', name + "\0"s + Number(0, 4));
    add('E', name + "\0"s + Number(1, 4));
    add('C', "P"s + name + "\0"s);
  }
  for (int i = 0; i < 8; ++i) add('S', "");
  add('H', "");
  add('d', "1\tx\n2\t\\N\n");
  add('d', "3\ty\n\\.\n");
  add('c', "");
  add('f', "no more\0"s);
  add('F', Number(1, 4));
  return all;
}

/// Takes what is sent, and gives a COPY its rows from the same messages.
class FakeLink final : public Link {
 public:
  explicit FakeLink(std::function<Message()> next) : next_(std::move(next)) {}
  Result<Message> Wait() override { return next_(); }
  Status Send(std::string&& bytes) override {
    sent += bytes;
    return Status::Ok();
  }
  void Flush() override {}
  void Terminate() override {}

  std::string sent;

 private:
  const std::function<Message()> next_;
};

/// The types of the messages. Fails where there is none.
std::string Types(std::string_view bytes) {
  std::string types;
  while (!bytes.empty()) {
    const Result<size_t> end = FrameEnd(bytes, false, kMostBytes);
    if (!end.ok() || *end == 0) {
      ADD_FAILURE() << "no message after " << types;
      break;
    }
    types += bytes[0];
    bytes.remove_prefix(*end);
  }
  return types;
}

struct Place {
  Place() : metrics(std::make_shared<Engine>()) {
    service.session.engine = std::make_shared<Engine>();
    service.session.device = DeviceChoice::kHost;
    service.session.threads = 1;
    service.session.files = false;
    service.options.explain_text = service_text;
    service.options.analysis_text = [](const Analysis&) { return std::string("x"); };
    service.roles = &roles;
    service.metrics = &metrics;
  }
  static std::string service_text(const Explanation&) { return "x"; }

  Service service;
  CurrentRoles roles;
  Metrics metrics;
};

const std::string kStart = Number(196608, 4) + "user\0me\0\0"s;

TEST(Connection, TakesMutatedMessages) {
  Place place;
  std::mt19937_64 random(FromEnvironment("TESSERA_SEED", 1));
  const std::vector<Message> good = Good();
  const auto next = [&] {
    Message message = good[random() % good.size()];
    for (uint64_t changes = random() % 8 < 5 ? 0 : random() % 4; changes > 0; --changes) {
      std::string& body = message.body;
      const size_t at = body.empty() ? 0 : random() % body.size();
      switch (random() % 5) {
        case 0:
          body.insert(at, 1, static_cast<char>(random()));
          break;
        case 1:
          body.resize(at);
          break;
        case 2:
          if (!body.empty()) body.erase(at, 1 + random() % 4);
          break;
        case 3:
          if (random() % 8 == 0) message.type = static_cast<char>(random());
          break;
        default:
          if (!body.empty()) body[at] = static_cast<char>(random());
      }
    }
    return message;
  };
  const uint64_t trials = FromEnvironment("TESSERA_TRIALS", 20'000);
  std::unique_ptr<FakeLink> link;
  std::unique_ptr<Connection> connection;
  std::map<char, uint64_t> answers;
  uint64_t taken = 0, since = 0;
  const auto begin = [&] {
    connection.reset();
    link = std::make_unique<FakeLink>([&] {
      ++taken;
      return next();
    });
    connection = std::make_unique<Connection>(place.service, link.get(), Origin{true, "", -1}, 1, 2);
    ASSERT_TRUE(connection->Take({0, kStart}));
    ASSERT_TRUE(connection->Take({'Q', "CREATE TEMP TABLE t (a INTEGER, b TEXT)\0"s}));
    ASSERT_TRUE(Types(link->sent).ends_with("CZ")) << Types(link->sent);
    link->sent.clear();
    since = 0;
  };
  begin();
  while (taken < trials && !HasFailure()) {
    ++taken;
    const bool goes_on = connection->Take(next());
    for (const char type : Types(link->sent)) ++answers[type];
    link->sent.clear();
    if (goes_on && ++since < 300) continue;
    if (goes_on) {
      // Whatever came before: what is right is answered. (The transaction may have failed.)
      ASSERT_TRUE(connection->Take({'S', ""}));
      ASSERT_TRUE(connection->Take({'Q', "ROLLBACK\0"s}));
      link->sent.clear();
      ASSERT_TRUE(connection->Take({'Q', "SELECT 5\0"s}));
      ASSERT_EQ(Types(link->sent), "TDCZ");
    }
    begin();
  }
  for (const char type : "TDCZE12t3n"s) EXPECT_GT(answers[type], 0u) << type;
}

TEST(Connection, LogsInWithMutatedMessages) {
  Place place;
  std::mt19937_64 random(FromEnvironment("TESSERA_SEED", 1));
  const Result<ScramVerifier> verifier = MakeVerifier("secret");
  ASSERT_TRUE(verifier.ok());
  Roles roles;
  roles["me"].verifier = *verifier;
  place.roles.Set(std::move(roles));
  place.service.options.roles_file = "roles";
  const std::string first = "SCRAM-SHA-256\0"s + SizedText("n,,n=,r=abcdefgh");
  for (uint64_t i = 0; i < FromEnvironment("TESSERA_TRIALS", 20'000) / 20 && !HasFailure(); ++i) {
    FakeLink link([] { return Message(); });
    Connection connection(place.service, &link, Origin{false, "10.0.0.1", 1}, 1, 2);
    const auto mutated = [&](std::string body) {
      for (uint64_t changes = random() % 3; changes > 0 && !body.empty(); --changes)
        body[random() % body.size()] = static_cast<char>(random());
      return body;
    };
    if (connection.Take({0, mutated(kStart)}) && connection.Take({'p', mutated(first)}))
      (void)connection.Take({'p', mutated("c=biws,r=abcdefgh,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")});
    EXPECT_FALSE(connection.has_logged_in());
    (void)Types(link.sent);
  }
}

}  // namespace
}  // namespace tessera::server
