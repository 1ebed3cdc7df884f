// Who may connect. A roles file has a line for each role: its name, what proves its password (SCRAM-SHA-256, in PostgreSQL's
// form, as `tessera --role NAME` prints it), and words for what it may do:
//
//   reporting SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey> readonly
//   loader    SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey> files
//
// A line that begins with # is a comment. RFC 5802 and RFC 7677 have the exchange.
//
// Start at: ReadRoles, ScramExchange. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

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
};
using Roles = std::map<std::string, Role, std::less<>>;
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
