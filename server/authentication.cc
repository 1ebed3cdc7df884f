#include "server/authentication.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "server/messages.h"

namespace tessera::server {
namespace {

constexpr int kIterations = 4096;
constexpr size_t kSaltBytes = 16, kNonceBytes = 18;
constexpr std::string_view kPrefix = "SCRAM-SHA-256$";

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string Hmac(std::string_view key, std::string_view text) {
  std::string out(SHA256_DIGEST_LENGTH, 0);
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Bytes(text), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  return out;
}

std::string Sha256(std::string_view text) {
  std::string out(SHA256_DIGEST_LENGTH, 0);
  SHA256(Bytes(text), text.size(), reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string Base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, 0);
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), Bytes(bytes), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0 || text.empty()) return std::nullopt;
  std::string out(text.size() / 4 * 3, 0);
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), Bytes(text), static_cast<int>(text.size())) < 0)
    return std::nullopt;
  for (size_t i = 0; i < 2 && text[text.size() - 1 - i] == '='; ++i) out.pop_back();
  return out;
}

bool IsSame(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// The value of "x=..." in a list with commas; nullopt: there is none.
std::optional<std::string_view> Attribute(std::string_view list, char name) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    if (item.size() >= 2 && item[0] == name && item[1] == '=') return item.substr(2);
    list.remove_prefix(std::min(list.size(), item.size() + 1));
  }
  return std::nullopt;
}

Status Malformed() { return ProtocolError("malformed SCRAM message"); }

}  // namespace

Result<std::string> RandomBytes(size_t size) {
  std::string out(size, 0);
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(size)) != 1)
    return Status(ErrorCode::kInternal, "OpenSSL has no random numbers");
  return out;
}

Result<ScramVerifier> ReadVerifier(std::string_view text) {
  const Status wrong = SqlError("no SCRAM-SHA-256 verifier", -1, "tessera --role NAME makes one of a password.");
  if (!text.starts_with(kPrefix)) return wrong;
  text.remove_prefix(kPrefix.size());
  const size_t colon = text.find(':'), dollar = text.find('$'), last = text.rfind(':');
  if (colon == text.npos || dollar == text.npos || colon > dollar || last < dollar) return wrong;
  ScramVerifier v;
  const auto [end, error] = std::from_chars(text.data(), text.data() + colon, v.iterations);
  const auto salt = FromBase64(text.substr(colon + 1, dollar - colon - 1));
  const auto stored = FromBase64(text.substr(dollar + 1, last - dollar - 1)),
             server = FromBase64(text.substr(last + 1));
  if (error != std::errc() || end != text.data() + colon || v.iterations < 1 || !salt || !stored || !server)
    return wrong;
  if (stored->size() != SHA256_DIGEST_LENGTH || server->size() != SHA256_DIGEST_LENGTH) return wrong;
  v.salt = *salt;
  v.stored_key = *stored;
  v.server_key = *server;
  return v;
}

Result<ScramVerifier> MakeVerifier(std::string_view password) {
  ScramVerifier v;
  v.iterations = kIterations;
  TESSERA_ASSIGN(v.salt, RandomBytes(kSaltBytes));
  std::string salted(SHA256_DIGEST_LENGTH, 0);
  if (PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()), Bytes(v.salt),
                        static_cast<int>(v.salt.size()), v.iterations, EVP_sha256(), SHA256_DIGEST_LENGTH,
                        reinterpret_cast<unsigned char*>(salted.data())) != 1)
    return Status(ErrorCode::kInternal, "OpenSSL cannot hash a password");
  v.stored_key = Sha256(Hmac(salted, "Client Key"));
  v.server_key = Hmac(salted, "Server Key");
  return v;
}

std::string VerifierText(const ScramVerifier& v) {
  return std::string(kPrefix) + std::to_string(v.iterations) + ":" + Base64(v.salt) + "$" + Base64(v.stored_key) + ":" +
         Base64(v.server_key);
}

namespace {

/// select=a,b and its kin. False: it is something else.
bool TakeTables(std::string_view word, std::optional<TableRights>* tables) {
  const size_t equals = word.find('=');
  if (equals == word.npos || equals + 1 == word.size()) return false;
  const std::string_view right = word.substr(0, equals);
  TableRights rights = tables->value_or(TableRights());
  const int64_t added = right == "select"   ? kRightSelect
                        : right == "insert" ? kRightInsert
                        : right == "all"    ? kAllRights
                                            : 0;
  if (added == 0) return false;
  for (std::string_view rest = word.substr(equals + 1); !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (end == 0) return false;
    rights.Add(rest.substr(0, end), added);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  *tables = std::move(rights);
  return true;
}

}  // namespace

std::optional<Role> CurrentRoles::FindInDatabase(std::string_view name) const {
  const Result<CatalogNames> names = database_ != nullptr ? database_->ReadNames() : CatalogNames();
  const CatalogRole* const found = names.ok() ? FindRole(names->roles, name) : nullptr;
  if (found == nullptr) return std::nullopt;
  Role role;
  role.is_of_catalog = true;
  role.logs_in = found->logs_in;
  Result<ScramVerifier> verifier = ReadVerifier(found->verifier);
  role.has_password = verifier.ok();
  if (verifier.ok()) role.verifier = *std::move(verifier);
  return role;
}

Result<bool> CurrentRoles::HasPasswords() const {
  if (database_ == nullptr) return false;
  TESSERA_ASSIGN(const CatalogNames names, database_->ReadNames());
  return std::ranges::any_of(names.roles, [](const CatalogRole& role) { return !role.verifier.empty(); });
}

Result<Roles> ReadRoles(const std::string& file) {
  std::ifstream in(file);
  if (!in) return Status(ErrorCode::kIo, "cannot read the roles file \"" + file + "\"");
  Roles roles;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line);
    std::string name, verifier, word;
    if (!(words >> name) || name[0] == '#') continue;
    words >> verifier;
    const std::string where = file + ":" + std::to_string(number) + ": ";
    Role role;
    Result<ScramVerifier> read = ReadVerifier(verifier);
    if (!read.ok()) return Status(read.status().kind(), where + read.status().message(), read.status().hint());
    role.verifier = *std::move(read);
    std::optional<TableRights> tables;
    while (words >> word) {
      if (word == "readonly") {
        role.reads_only = true;
      } else if (word == "files") {
        role.files = true;
      } else if (!TakeTables(word, &tables)) {
        return SqlError(where + "\"" + word + "\" is nothing that a role may do", -1,
                        "It is readonly, files, select=TABLES, insert=TABLES or all=TABLES, with commas between them.");
      }
    }
    if (tables) role.tables = std::make_shared<const TableRights>(*std::move(tables));
    if (!roles.emplace(name, std::move(role)).second) return SqlError(where + "role \"" + name + "\" is there twice");
  }
  return roles;
}

ScramExchange::ScramExchange(const Role* role) : exists_(role != nullptr) {
  if (role != nullptr) verifier_ = role->verifier;
}

Result<std::string> ScramExchange::First(std::string_view message) {
  // "n,,n=user,r=nonce": a client that could bind the channel says y, and p if it does.
  if (message.size() < 3 || (message[0] != 'n' && message[0] != 'y')) return Malformed();
  const size_t header = message.find(',', 2);
  if (message[1] != ',' || header == message.npos) return Malformed();
  header_ = message.substr(0, header + 1);
  client_first_ = message.substr(header + 1);
  const auto nonce = Attribute(client_first_, 'r');
  if (!nonce || nonce->empty()) return Malformed();
  TESSERA_ASSIGN(const std::string mine, RandomBytes(kNonceBytes));
  if (!exists_) {
    // As of a role with a password, so that who asks does not learn which roles there are.
    TESSERA_ASSIGN(verifier_, MakeVerifier(mine));
  }
  nonce_ = std::string(*nonce) + Base64(mine);
  server_first_ = "r=" + nonce_ + ",s=" + Base64(verifier_.salt) + ",i=" + std::to_string(verifier_.iterations);
  return server_first_;
}

Result<std::optional<std::string>> ScramExchange::Final(std::string_view message) {
  const size_t proof_at = message.rfind(",p=");
  const auto channel = Attribute(message, 'c'), nonce = Attribute(message, 'r');
  if (proof_at == message.npos || !channel || !nonce || server_first_.empty()) return Malformed();
  const auto proof = FromBase64(message.substr(proof_at + 3));
  const auto bound = FromBase64(*channel);
  if (!proof || proof->size() != SHA256_DIGEST_LENGTH || !bound || *bound != header_ || *nonce != nonce_)
    return Malformed();
  const std::string signed_text = client_first_ + "," + server_first_ + "," + std::string(message.substr(0, proof_at));
  std::string key = Hmac(verifier_.stored_key, signed_text);
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<char>(key[i] ^ (*proof)[i]);
  if (!IsSame(Sha256(key), verifier_.stored_key) || !exists_) return std::optional<std::string>();
  return std::optional<std::string>("v=" + Base64(Hmac(verifier_.server_key, signed_text)));
}

}  // namespace tessera::server
