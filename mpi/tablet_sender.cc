// Tablet files in pieces.

#include "mpi/tablet_sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera {

Status TabletSender::Run(uint64_t* bytes_sent) {
  // Takes the ranks one after the other. The files of one rank keep their order.
  std::stable_sort(queues_.begin(), queues_.end(), [](const File& a, const File& b) { return a.to < b.to; });
  std::vector<std::deque<File>> by_rank;
  for (const File& f : queues_) {
    if (by_rank.empty() || by_rank.back().front().to != f.to) by_rank.emplace_back();
    by_rank.back().push_back(f);
  }
  Status status;
  for (bool any = true; any;) {
    any = false;
    for (std::deque<File>& files : by_rank) {
      if (files.empty()) continue;
      any = true;
      File& file = files.front();
      while (under_way_.size() >= kPiecesUnderWay) RetireOne();
      const size_t size = static_cast<size_t>(std::min<uint64_t>(kGreatestMessage, file.bytes - file.at));
      auto piece = std::make_unique<char[]>(size);
      Status read = Read(&file, piece.get(), size);
      if (status.ok()) status = std::move(read);
      const Transport::Request request = messenger_.transport().Send(file.to, kTagTablet, piece.get(), size, true);
      under_way_.push_back({request, std::move(piece)});
      file.at += size;
      *bytes_sent += size;
      if (file.at == file.bytes) {
        if (file.fd >= 0) close(file.fd);
        files.pop_front();
      }
    }
  }
  while (!under_way_.empty()) RetireOne();
  return status;
}

Status TabletSender::Read(File* file, char* to, size_t size) {
  if (file->at == 0) file->fd = open(file->path.c_str(), O_RDONLY | O_CLOEXEC);
  for (size_t got = 0; got < size;) {
    const ssize_t n =
        file->fd < 0 ? -1 : pread(file->fd, to + got, size - got, static_cast<off_t>(file->offset + file->at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return {ErrorCode::kIo, "cannot read \"" + file->path + "\": " + (n == 0 ? "it is too short" : strerror(errno))};
    got += static_cast<size_t>(n);
  }
  return Status::Ok();
}

void TabletSender::RetireOne() {
  messenger_.Wait(under_way_.front().request);
  under_way_.pop_front();
}

}  // namespace tessera
