#include "shell/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

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
  Completer completer;

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

  /// Called by libedit for Tab.
  static unsigned char Complete(EditLine* editor, int) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<Impl*>(data)->CompleteWord();
  }
  unsigned char CompleteWord() const {
    const LineInfo* const line = el_line(editor);
    const std::string_view text(line->buffer, static_cast<size_t>(line->cursor - line->buffer));
    pollfd more = {STDIN_FILENO, POLLIN, 0};
    // In a text that is pasted, and at the start of a line, a tab indents.
    const bool indents = text.find_first_not_of(" \t\n") == std::string_view::npos || poll(&more, 1, 0) > 0;
    if (indents || completer == nullptr) return el_insertstr(editor, "  ") == 0 ? CC_REFRESH : CC_ERROR;
    const Completion found = completer(text);
    if (found.candidates.empty()) return CC_REFRESH_BEEP;
    std::string common = found.candidates[0];
    for (const std::string& candidate : found.candidates) {
      const auto differs = std::mismatch(common.begin(), common.end(), candidate.begin(), candidate.end()).first;
      common.erase(differs, common.end());
    }
    while (!common.empty() && found.candidates.size() > 1 && (common.back() & 0x80) != 0) common.pop_back();
    const std::string typed(text.substr(found.begin));
    if (common.size() >= typed.size() && common != typed) {
      el_deletestr(editor, static_cast<int>(Characters(typed)));
      return el_insertstr(editor, common.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }
    if (found.candidates.size() == 1) return CC_REFRESH;
    List(found.candidates);
    return CC_REDISPLAY;
  }
  static size_t Characters(std::string_view text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  }
  /// Prints them in columns, under the line.
  static void List(const std::vector<std::string>& candidates) {
    constexpr size_t kMost = 200;
    winsize size{};
    const size_t window = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    size_t width = 1;
    for (const std::string& candidate : candidates) width = std::max(width, DisplayWidth(Printable(candidate)) + 2);
    const size_t shown = std::min(kMost, candidates.size()), columns = std::max<size_t>(window / width, 1);
    const size_t rows = (shown + columns - 1) / columns;
    std::string out = "\n";
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = row; i < shown; i += rows) {
        const std::string text = Printable(candidates[i]);
        out += text;
        if (i + rows < shown) out.append(width - DisplayWidth(text), ' ');
      }
      out += '\n';
    }
    if (shown < candidates.size()) out += "... and " + std::to_string(candidates.size() - shown) + " more\n";
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
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
  el_set(impl_->editor, EL_ADDFN, "tessera-complete", "Complete the word", &Impl::Complete);
  el_set(impl_->editor, EL_BIND, "^I", "tessera-complete", nullptr);
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
  return Outcome::kLine;
}

void LineEditor::Remember(const std::string& statement) {
  if (statement.find_first_not_of(" \t\n") == std::string::npos || impl_->history == nullptr) return;
  history(impl_->history, &impl_->event, H_ENTER, statement.c_str());
}

void LineEditor::SetCompleter(Completer completer) { impl_->completer = std::move(completer); }

}  // namespace tessera
