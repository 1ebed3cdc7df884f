// Who may connect. A roles file has a line for each role: its name, what proves its password (SCRAM-SHA-256, in PostgreSQL's
// form, as `tessera --role NAME` prints it), and words for what it may do:
//
//   reporting SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey> readonly
//   loader    SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey> files
//   sales     SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey> select=orders,eu.* insert=orders all=scratch
//
// A line that begins with # is a comment. RFC 5802 and RFC 7677 have the exchange.
//
// Start at: ReadRoles, CurrentRoles, ScramExchange. One thread, but CurrentRoles.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "session/table_rights.h"
#include "tablet/database.h"

namespace tessera::server {

/// What proves a password without giving it away.
struct ScramVerifier {
  int iterations = 0;
  std::string salt, stored_key, server_key;  ///< bytes
};
/// Errors: it is none.
Result<ScramVerifier> ReadVerifier(std::string_view text);
Result<ScramVerifier> MakeVerifier(std::string_view password);
std::string VerifierText(const ScramVerifier& verifier);

struct Role {
  ScramVerifier verifier;
  bool reads_only = false;
  bool files = false;
  std::shared_ptr<const TableRights> tables;  ///< nullptr: all rights on all of them
  bool is_of_catalog = false;                 ///< of CREATE ROLE: its rights are what GRANT says
  bool logs_in = true;
  bool has_password = true;
};
using Roles = std::map<std::string, Role, std::less<>>;

/// The roles as they are now. Any thread.
class CurrentRoles {
 public:
  void Set(Roles roles) {
    const std::lock_guard lock(mutex_);
    roles_ = std::make_shared<const Roles>(std::move(roles));
  }
  /// Roles of CREATE ROLE are those of this database, which outlives this; without it there are none.
  void SetDatabase(Database* database) { database_ = database; }
  /// Whether CREATE ROLE gave any role a password. Errors: the catalog cannot be read.
  Result<bool> HasPasswords() const;
  /// One of the roles file, or else of CREATE ROLE. nullopt: there is none of that name, or the catalog cannot be read.
  std::optional<Role> Find(std::string_view name) const {
    std::shared_ptr<const Roles> roles;
    {
      const std::lock_guard lock(mutex_);
      roles = roles_;
    }
    const auto at = roles->find(name);
    return at != roles->end() ? std::optional(at->second) : FindInDatabase(name);
  }

 private:
  std::optional<Role> FindInDatabase(std::string_view name) const;

  Database* database_ = nullptr;
  mutable std::mutex mutex_;
  std::shared_ptr<const Roles> roles_ = std::make_shared<const Roles>();
};

/// Errors: kIo; a line that is wrong, by its number.
Result<Roles> ReadRoles(const std::string& file);

/// The server's side of one SCRAM-SHA-256 exchange, without channel binding.
class ScramExchange {
 public:
  /// `role`: nullptr if there is none of that name; then it fails at its end, as it does for a wrong password.
  explicit ScramExchange(const Role* role);

  /// The client's first message; gives the server's. Errors: it is none.
  Result<std::string> First(std::string_view message);
  /// The client's last message; gives the server's, or nullopt if the password is wrong. Errors: it is none.
  Result<std::optional<std::string>> Final(std::string_view message);

 private:
  ScramVerifier verifier_;
  bool exists_ = false;
  std::string header_, client_first_, server_first_, nonce_;
};

/// Bytes that cannot be guessed.
Result<std::string> RandomBytes(size_t size);

}  // namespace tessera::server
