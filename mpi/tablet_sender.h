// Tablet files on their way from the master to the ranks that lack them. Private to mpi/.
//
// Start at: TabletSender::Add, Run. One thread, the one that joined the cluster.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "mpi/messenger.h"

namespace tessera {

/// Sends files piece by piece, to the ranks one after the other, so that a slow rank does not hold up the others.
class TabletSender {
 public:
  explicit TabletSender(Messenger* messenger) : messenger_(*messenger) {}

  /// `bytes` of the file from `offset` on.
  void Add(int to, const std::string& path, uint64_t offset, uint64_t bytes) {
    queues_.push_back({to, path, offset, bytes});
  }

  /// Sends everything. Errors: a file that cannot be read. Its receiver gets zeros, which fail the checksums, and later
  /// the error on which all ranks agree.
  Status Run(uint64_t* bytes_sent);

 private:
  static constexpr size_t kPiecesUnderWay = 16;  // 64 MiB
  struct File {
    int to;
    std::string path;
    uint64_t offset;
    uint64_t bytes;
    uint64_t at = 0;
    int fd = -1;
  };
  struct Piece {
    Transport::Request request;
    std::unique_ptr<char[]> bytes;
  };

  static Status Read(File* file, char* to, size_t size);
  void RetireOne();

  Messenger& messenger_;
  std::vector<File> queues_;
  std::deque<Piece> under_way_;
};

}  // namespace tessera
