#include "server/listening.h"

namespace tessera::server {

using Tcp = asio::ip::tcp;

Status NotListening(const std::string& where, const asio::error_code& error) {
  return {ErrorCode::kIo, "cannot listen on " + where + ": " + error.message()};
}

Status ListenOn(const std::string& host, int port, Tcp::acceptor* acceptor) {
  const std::string where = host + ":" + std::to_string(port);
  asio::error_code error;
  Tcp::resolver resolver(acceptor->get_executor());
  const auto found = resolver.resolve(host, std::to_string(port), Tcp::resolver::passive, error);
  if (error || found.empty()) return NotListening(where, error);
  const Tcp::endpoint endpoint = *found.begin();
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(Tcp::acceptor::max_listen_connections, error);
  return error ? NotListening(where, error) : Status::Ok();
}

std::string PlaceOf(const Tcp::acceptor& acceptor) {
  const Tcp::endpoint place = acceptor.local_endpoint();
  const std::string host = place.address().to_string();
  return (place.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(place.port());
}

}  // namespace tessera::server
