// How many columns of a terminal a text takes, and how to make any bytes printable there. Works without a locale.
//
// Start at: Printable, DisplayWidth. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

/// Control characters become \n, \t, \r or \x1b and bytes that are not UTF-8 U+FFFD, so that a value can neither break
/// the layout nor send the terminal commands.
std::string Printable(std::string_view text);

/// Takes one cluster, which is what a reader calls a character, from the front of `*rest`, which must not be empty:
/// a letter with its accents, or several emoji that are joined to one (Unicode, annex 29). Returns its columns: 2 for East
/// Asian wide characters and emoji, whatever they are joined from, 0 for marks that stand alone, else 1.
size_t TakeCluster(std::string_view* rest);

/// Columns that `text`, printable UTF-8, takes: those of its clusters.
size_t DisplayWidth(std::string_view text);

/// `text` cut to at most `width` columns; if something had to go, the last column says so with an ellipsis.
std::string CutToWidth(std::string_view text, size_t width);

/// One character of UTF-8 from the front of `*rest`, which must not be empty; U+FFFD for a byte that is not part of
/// one.
char32_t NextCharacter(std::string_view* rest);

/// `text` with every byte that is not UTF-8 replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

}  // namespace tessera
