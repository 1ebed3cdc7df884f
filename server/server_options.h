// What the command line says of a server.
//
// Start at: ServerOptions.
#pragma once

#include <functional>
#include <string>

#include "session/session.h"

namespace tessera::server {

/// What --serve and its kin say.
struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;                         ///< 0: a free one, which is said
  std::string socket_folder = "/tmp";   ///< of the Unix socket .s.PGSQL.PORT; "": there is none
  int max_connections = 100;            ///< clients at once
  int max_queries = 0;                  ///< large ones at once (Engine::SetMostQueries); 0: any number
  int authentication_timeout = 60'000;  ///< milliseconds until a client has logged in
  std::string roles_file;               ///< who may connect (authentication.h); "": only processes of this machine
  bool authenticate_all = false;        ///< those of this machine, too
  bool files = false;                   ///< statements of roles that say nothing else may name files
  std::string files_folder;             ///< where these files must be; "": anywhere
  std::string metrics_host = "127.0.0.1";
  int metrics_port = -1;                 ///< of /metrics; -1: there is none; 0: a free one, which is said
  double log_slow = -1;                  ///< statements that take as many milliseconds are logged; below 0: none is
  std::string log_slow_file;             ///< "": the standard error
  std::string tls_certificate, tls_key;  ///< files; "": no TLS
  /// EXPLAIN as text, a line for a row.
  std::function<std::string(const Explanation&)> explain_text;
  std::function<std::string(const Analysis&)> analysis_text;
};

}  // namespace tessera::server
