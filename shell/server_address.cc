// Reading the address of a server.
#include <algorithm>
#include <cctype>

#include "shell/server_session.h"

namespace tessera {
namespace {

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

Result<ServerAddress> ReadServerAddress(std::string_view text) {
  constexpr std::string_view kSocket = "/.s.PGSQL.";
  ServerAddress address;
  std::string_view host = text;
  if (const size_t socket = text.rfind(kSocket); text.starts_with('/') && socket != text.npos) {
    host = socket == 0 ? "/" : text.substr(0, socket);
    address.port = text.substr(socket + kSocket.size());
    if (!IsPort(address.port)) host = {};
  } else if (text.starts_with('[')) {
    const size_t end = text.find(']');
    host = end == text.npos ? std::string_view() : text.substr(1, end - 1);
    const std::string_view rest = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (!rest.empty()) address.port = rest.substr(1);
    if (!rest.empty() && (rest[0] != ':' || !IsPort(address.port))) host = {};
  } else if (const size_t colon = text.rfind(':'); colon != text.npos && IsPort(text.substr(colon + 1))) {
    host = text.substr(0, colon);
    address.port = text.substr(colon + 1);
    if (host.find(':') != host.npos) host = {};
  } else if (colon != text.npos) {
    host = {};
  }
  if (host.empty()) {
    return SqlError("--host takes HOST, HOST:PORT, [IPV6]:PORT, or the folder of a Unix socket: not \"" +
                    std::string(text) + "\"");
  }
  address.host = host;
  return address;
}

}  // namespace tessera
