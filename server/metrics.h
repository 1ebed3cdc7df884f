// What a server counts, as text for Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/ has its form.
//
// Start at: Metrics. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "session/engine.h"

namespace tessera::server {

class Metrics {
 public:
  explicit Metrics(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  void Connected() { ++connections_; }
  void Disconnected() { ++ended_; }
  /// A client that was sent away, as there are too many.
  void Refused() { ++refused_; }
  void Received(size_t bytes) { bytes_in_ += bytes; }
  void Sent(size_t bytes) { bytes_out_ += bytes; }
  void Began() { ++began_; }
  /// A statement has ended. `word`: its first one in lower case. `rows`: that it returned or changed.
  void Ended(std::string_view word, bool succeeded, double seconds, uint64_t rows);
  /// An error that a client was told.
  void Failed(std::string_view sqlstate);

  std::string Text() const;

 private:
  /// Upper bounds of the histogram's buckets, in seconds.
  static constexpr std::array<double, 13> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                     0.1,    0.5,   1,      5,     10,   60};
  struct Statements {
    uint64_t succeeded = 0, failed = 0;
  };

  const std::shared_ptr<Engine> engine_;
  std::atomic<uint64_t> connections_{0}, ended_{0}, refused_{0}, bytes_in_{0}, bytes_out_{0}, began_{0};
  mutable std::mutex mutex_;                                   ///< guards what follows
  std::map<std::string, Statements, std::less<>> statements_;  ///< by their kinds
  std::map<std::string, uint64_t, std::less<>> errors_;        ///< by the class of their SQLSTATE
  std::array<uint64_t, kBounds.size() + 1> taken_{};           ///< statements by their time; the last ones took longer
  double seconds_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace tessera::server
