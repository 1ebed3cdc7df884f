#include "shell/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/display_width.h"
#include "shell/interrupts.h"

namespace tessera {

struct LineEditor::Impl {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string history_file;
  std::string prompt;
  std::string last_line;
  bool interrupted = false;
  std::string pending;  ///< bytes of a character that are here already

  static const char* Prompt(EditLine* editor) {
    void* impl = nullptr;
    el_get(editor, EL_CLIENTDATA, &impl);
    return static_cast<Impl*>(impl)->prompt.c_str();
  }

  /// Called by libedit for each character. Its own reader goes on after a signal; this one stops at Ctrl-C.
  static int ReadCharacter(EditLine* editor, wchar_t* out) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    Impl* impl = static_cast<Impl*>(data);
    for (;;) {
      if (PendingInterrupt() == SIGINT) {
        TakeInterrupt();
        impl->interrupted = true;
      }
      if (impl->interrupted || PendingInterrupt() != 0) return -1;
      pollfd ready[2] = {{STDIN_FILENO, POLLIN, 0}, {InterruptDescriptor(), POLLIN, 0}};
      if (poll(ready, InterruptDescriptor() >= 0 ? 2 : 1, -1) < 0 && errno != EINTR) return -1;
      if (PendingInterrupt() != 0 || ready[0].revents == 0) continue;
      char byte = 0;
      const ssize_t n = read(STDIN_FILENO, &byte, 1);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return static_cast<int>(n);
      impl->pending += byte;
      // Wait for the rest of a character of UTF-8.
      const auto first = static_cast<unsigned char>(impl->pending[0]);
      const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
      if (impl->pending.size() < length) continue;
      std::string_view rest = impl->pending;
      *out = static_cast<wchar_t>(NextCharacter(&rest));
      impl->pending.clear();
      return 1;
    }
  }
};

LineEditor::LineEditor(const std::string& history_file) : impl_(std::make_unique<Impl>()) {
  // libedit converts between bytes and characters with the locale; any one with UTF-8 will do.
  if (setlocale(LC_CTYPE, "") == nullptr || std::strcmp(setlocale(LC_CTYPE, nullptr), "C") == 0 ||
      std::strcmp(setlocale(LC_CTYPE, nullptr), "POSIX") == 0) {
    setlocale(LC_CTYPE, "C.UTF-8");
  }
  impl_->history_file = history_file;
  impl_->editor = el_init("tessera", stdin, stdout, stderr);
  if (impl_->editor == nullptr) return;
  el_set(impl_->editor, EL_CLIENTDATA, impl_.get());
  el_set(impl_->editor, EL_PROMPT, &Impl::Prompt);
  el_set(impl_->editor, EL_EDITOR, "emacs");
  el_set(impl_->editor, EL_SIGNAL, 0);
  el_set(impl_->editor, EL_GETCFN, &Impl::ReadCharacter);
  el_set(impl_->editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  impl_->history = history_init();
  if (impl_->history != nullptr) {
    history(impl_->history, &impl_->event, H_SETSIZE, 2000);
    history(impl_->history, &impl_->event, H_SETUNIQUE, 1);
    el_set(impl_->editor, EL_HIST, history, impl_->history);
    if (!history_file.empty()) history(impl_->history, &impl_->event, H_LOAD, history_file.c_str());
  }
  el_source(impl_->editor, nullptr);  // ~/.editrc
}

LineEditor::~LineEditor() {
  if (impl_->history != nullptr) {
    if (!impl_->history_file.empty()) {
      const mode_t before = umask(077);  // statements may hold secrets
      history(impl_->history, &impl_->event, H_SAVE, impl_->history_file.c_str());
      umask(before);
    }
    history_end(impl_->history);
  }
  if (impl_->editor != nullptr) el_end(impl_->editor);
}

LineEditor::Outcome LineEditor::Read(const std::string& prompt, std::string* line) {
  line->clear();
  if (impl_->editor == nullptr) return Outcome::kEnd;
  impl_->prompt = prompt;
  impl_->interrupted = false;
  impl_->pending.clear();
  el_resize(impl_->editor);
  int length = 0;
  const char* text = el_gets(impl_->editor, &length);
  if (impl_->interrupted) {
    el_reset(impl_->editor);
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return Outcome::kInterrupted;
  }
  if (text == nullptr || length <= 0) {
    std::fputs("\n", stdout);
    std::fflush(stdout);
    return Outcome::kEnd;
  }
  line->assign(text, static_cast<size_t>(length));
  if (!line->empty() && line->back() == '\n') line->pop_back();
  if (line->find_first_not_of(" \t") != std::string::npos && impl_->history != nullptr) {
    history(impl_->history, &impl_->event, H_ENTER, line->c_str());
  }
  return Outcome::kLine;
}

}  // namespace tessera
