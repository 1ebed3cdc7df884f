// SplitStatements and FormatError: scripts cut at semicolons, errors with a caret.
#include <gtest/gtest.h>

#include <random>

#include "compiler/compiler.h"

namespace tessera {
namespace {

std::vector<std::string> Split(std::string_view script) {
  std::vector<std::string> out;
  for (const StatementText& s : SplitStatements(script)) {
    EXPECT_EQ(script.substr(s.offset, s.sql.size()), s.sql);
    out.push_back(std::to_string(s.line) + ":" + std::string(s.sql));
  }
  return out;
}

bool IsComplete(std::string_view script) { return ScriptEnd().IsBetweenStatements(script); }

using Texts = std::vector<std::string>;

TEST(SplitTest, Semicolons) {
  EXPECT_EQ(Split(""), Texts{});
  EXPECT_EQ(Split(" ;; ; "), Texts{});
  EXPECT_EQ(Split("a"), Texts{"1:a"});
  EXPECT_EQ(Split("a;"), Texts{"1:a"});
  EXPECT_EQ(Split("a ; b"), (Texts{"1:a", "1:b"}));
  EXPECT_EQ(Split("\n\na\n;\n  b\nc ;;d"), (Texts{"3:a", "5:b\nc", "6:d"}));
}

TEST(SplitTest, Quotes) {
  EXPECT_EQ(Split("select ';'; x"), (Texts{"1:select ';'", "1:x"}));
  EXPECT_EQ(Split("select 'it''s;'; x"), (Texts{"1:select 'it''s;'", "1:x"}));
  EXPECT_EQ(Split("select \";\"\"\"; x"), (Texts{"1:select \";\"\"\"", "1:x"}));
  EXPECT_EQ(Split("select e'\\';'; x"), (Texts{"1:select e'\\';'", "1:x"}));
  // Without E a backslash is a character like any other, also where a name ends in e.
  EXPECT_EQ(Split("select '\\'; x"), (Texts{"1:select '\\'", "1:x"}));
  EXPECT_EQ(Split("select date'\\'; x"), (Texts{"1:select date'\\'", "1:x"}));
  EXPECT_EQ(Split("select $$;$$; x"), (Texts{"1:select $$;$$", "1:x"}));
  EXPECT_EQ(Split("select $q$;$$;$q$; x"), (Texts{"1:select $q$;$$;$q$", "1:x"}));
  // A parameter and a name with dollars open no quote.
  EXPECT_EQ(Split("select $1; a$b$; x"), (Texts{"1:select $1", "1:a$b$", "1:x"}));
}

TEST(SplitTest, Comments) {
  EXPECT_EQ(Split("-- a;\nb; -- c;"), (Texts{"2:b"}));
  EXPECT_EQ(Split("/* a; /* b; */ c; */ d; e"), (Texts{"1:d", "1:e"}));
  EXPECT_EQ(Split("a /* ; */ b -- ;\n c; d"), (Texts{"1:a /* ; */ b -- ;\n c", "2:d"}));
  EXPECT_EQ(Split("a; -- last"), (Texts{"1:a"}));
  // An operator with a minus is no comment.
  EXPECT_EQ(Split("1 - - 2; 3"), (Texts{"1:1 - - 2", "1:3"}));
}

TEST(SplitTest, WhatDoesNotEndIsPartOfAStatement) {
  EXPECT_EQ(Split("a /* b; c"), (Texts{"1:a /* b; c"}));
  EXPECT_EQ(Split("a; /* b; c"), (Texts{"1:a", "1:/* b; c"}));
  EXPECT_EQ(Split("a;\n/* b /* c */;\nd;\n"), (Texts{"1:a", "2:/* b /* c */;\nd;\n"}));
  EXPECT_EQ(Split("/*"), (Texts{"1:/*"}));
  EXPECT_EQ(Split("a; 'b; c"), (Texts{"1:a", "1:'b; c"}));
  EXPECT_EQ(Split("a; \"b; c"), (Texts{"1:a", "1:\"b; c"}));
  EXPECT_EQ(Split("a; $q$b; $$ c"), (Texts{"1:a", "1:$q$b; $$ c"}));
  EXPECT_EQ(Split("a -- b; /* c"), (Texts{"1:a"}));
}

TEST(SplitTest, TellsWhatAScriptEndsIn) {
  const auto open = [](std::string_view script) {
    ScriptEnd end;
    end.IsBetweenStatements(script);
    return end.Open(script);
  };
  EXPECT_EQ(open("a 'b\n"), "'");
  EXPECT_EQ(open("a e'b\n"), "'");
  EXPECT_EQ(open("a \"b\n"), "\"");
  EXPECT_EQ(open("a $q$b\n"), "$");
  EXPECT_EQ(open("a /* b /* c */\n"), "/*");
  EXPECT_EQ(open("a -- 'b\n"), "");
  EXPECT_EQ(open("a 'b'\n"), "");
}

TEST(SplitTest, TellsWhetherTheShellShouldAskForMore) {
  EXPECT_TRUE(IsComplete(""));
  EXPECT_TRUE(IsComplete("  -- nothing"));
  EXPECT_TRUE(IsComplete("a;"));
  EXPECT_TRUE(IsComplete("a; -- b"));
  EXPECT_FALSE(IsComplete("a"));
  EXPECT_FALSE(IsComplete("a; b"));
  EXPECT_FALSE(IsComplete("a 'b;"));
  EXPECT_FALSE(IsComplete("a; /* b;"));
  EXPECT_FALSE(IsComplete("a $$ b;"));
}

TEST(SplitTest, LineByLineAsAtOnce) {
  const std::string_view pieces[] = {"a",  "'",  "\"", "''", "e'\\'", "$q$", "$$", "/*", "*/", "--",
                                     "\\", "\n", "\n", ";",  ";",     " ",   "*",  "/",  "$",  "q"};
  std::mt19937_64 random(3);
  int ends = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string script;
    ScriptEnd end;
    for (int line = 0; line < 8; ++line) {
      for (size_t n = random() % 6; n > 0; --n) script += pieces[random() % std::size(pieces)];
      script += '\n';
      const bool whole = IsComplete(script);
      ASSERT_EQ(end.IsBetweenStatements(script), whole) << script;
      ends += whole;
    }
  }
  EXPECT_GT(ends, 1000);
}

TEST(SplitTest, LinesWithoutEndTakeLinearTime) {
  for (const std::string_view open : {"'", "\"", "$$", "$q$", "/*", "e'", ""}) {
    ScriptEnd end;
    std::string script(open);
    for (int line = 0; line < 100000; ++line) {
      script += line % 2 == 0 ? "a '';\n" : "\"\" $$ ; \n";
      end.IsBetweenStatements(script);
    }
  }
}

std::string Format(int position, std::string_view sql, int first_line = 1, std::string hint = {}) {
  return FormatError(SqlError("wrong", position, std::move(hint)), sql, first_line);
}

TEST(FormatErrorTest, CaretUnderThePlace) {
  EXPECT_EQ(Format(7, "select x"), "ERROR:  wrong\nLINE 1: select x\n               ^");
  EXPECT_EQ(Format(0, "x"), "ERROR:  wrong\nLINE 1: x\n        ^");
  EXPECT_EQ(Format(8, "select x"), "ERROR:  wrong\nLINE 1: select x\n                ^");
  EXPECT_EQ(Format(99, "select x"), "ERROR:  wrong\nLINE 1: select x\n                ^");
}

TEST(FormatErrorTest, NoPlaceAndHint) {
  EXPECT_EQ(Format(-1, "select x"), "ERROR:  wrong");
  EXPECT_EQ(Format(-1, "select x", 1, "Do."), "ERROR:  wrong\nHINT:  Do.");
  EXPECT_EQ(Format(7, "select x", 1, "Do."), "ERROR:  wrong\nLINE 1: select x\n               ^\nHINT:  Do.");
}

TEST(FormatErrorTest, LinesCountFromTheScript) {
  EXPECT_EQ(Format(9, "select\n  x,\n  y", 10), "ERROR:  wrong\nLINE 11:   x,\n           ^");
  EXPECT_EQ(Format(9, "select\r\n x\r\n", 1), "ERROR:  wrong\nLINE 2:  x\n         ^");
}

TEST(FormatErrorTest, CountsCharactersAndTakesTabsForBlanks) {
  EXPECT_EQ(Format(11, "s 'h\xC3\xA9\xC3\xA9' x"),
            "ERROR:  wrong\nLINE 1: s 'h\xC3\xA9\xC3\xA9' x\n                 ^");
  EXPECT_EQ(Format(2, "\ta\tb"), "ERROR:  wrong\nLINE 1:  a b\n          ^");
}

TEST(FormatErrorTest, CountsTheColumnsOfATerminal) {
  const auto caret = [](const std::string& before) {
    const std::string shown = Format(static_cast<int>(before.size()), before + "x");
    return shown.size() - 2 - shown.rfind('\n') - std::string_view("LINE 1: ").size();
  };
  EXPECT_EQ(caret("SELECT '日本', "), 15u);
  EXPECT_EQ(caret("'\xF0\x9F\x98\x80' "), 5u);  // an emoji
  EXPECT_EQ(caret("'👩\u200D👩\u200D👧' "), 5u);   // three of them, joined to one
  EXPECT_EQ(caret("'e\u0301' "), 4u);           // a letter and its accent
  // A long line is cut by columns, too, and not within a character.
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "日";
  std::string half;
  for (int i = 0; i < 30; ++i) half += "日";
  EXPECT_EQ(Format(static_cast<int>(wide.size()), wide + "x"),
            "ERROR:  wrong\nLINE 1: ..." + half + "x\n" + std::string(8 + 3 + 60, ' ') + "^");
  EXPECT_EQ(Format(0, wide), "ERROR:  wrong\nLINE 1: " + wide.substr(0, wide.size() / 2) + "...\n        ^");
}

TEST(FormatErrorTest, LongLinesAreCutAroundTheCaret) {
  const std::string before(200, 'a'), after(200, 'b');
  const std::string shown = Format(200, before + after);
  EXPECT_EQ(shown, "ERROR:  wrong\nLINE 1: ..." + std::string(60, 'a') + std::string(40, 'b') + "...\n" +
                       std::string(8 + 3 + 60, ' ') + "^");
  EXPECT_EQ(Format(5, after), "ERROR:  wrong\nLINE 1: " + std::string(100, 'b') + "...\n             ^");
}

}  // namespace
}  // namespace tessera
