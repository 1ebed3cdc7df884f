/* The C interface of Tessera: libtessera.so.
 *
 *   tessera_open -> tessera_connect -> tessera_prepare -> tessera_bind_* -> tessera_execute -> an Arrow stream
 *
 * Rows come out, and go in, by Arrow's C stream interface; capi/README.md has the types.
 *
 * Calls return TESSERA_OK or TESSERA_ERROR; in the latter case *error says what is wrong, unless error is NULL.
 *
 * A connection and its statements are used by one thread at a time; a second one gets an error. Several connections of a
 * database are used at the same time, by a thread each. Any thread may call tessera_cancel at any time before
 * tessera_disconnect. A stream belongs to the thread that reads it, and lives on when all else is closed. After fork() the
 * child can use nothing that the parent opened: it opens the database itself.
 *
 * What has been closed while something is open that was made of it stays until that is closed, too.
 */
#ifndef TESSERA_H
#define TESSERA_H

#include <stddef.h>
#include <stdint.h>

#include "arrow.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_API __attribute__((visibility("default")))

#define TESSERA_OK 0
#define TESSERA_ERROR 1

typedef struct tessera_database tessera_database;
typedef struct tessera_connection tessera_connection;
typedef struct tessera_statement tessera_statement;

/* What went wrong. Starts as TESSERA_ERROR_INIT; a call that fails sets all of it anew, one that succeeds leaves it. */
typedef struct tessera_error {
  char sqlstate[6]; /* five letters: "42P01" */
  int32_t position; /* of the error: byte in the text that was given to the call, from 0; -1 if it has none */
  char* message;    /* NULL: there was no error yet */
  char* hint;       /* what to do about it; "" if there is nothing to say */
} tessera_error;
#define TESSERA_ERROR_INIT \
  { {0}, -1, NULL, NULL }
/* Frees the texts. */
TESSERA_API void tessera_error_clear(tessera_error* error);

/* "0.3.0" */
TESSERA_API const char* tessera_version(void);

/* ---- Databases and connections */

/* Starts as TESSERA_OPTIONS_INIT, which stands for what the shell does without options. */
typedef struct tessera_options {
  size_t size;           /* of this struct, so that later versions can have more fields */
  int read_only;         /* not 0: nothing is changed, and the database has to be there */
  int threads;           /* of each connection; 0: as many as the process may use */
  uint64_t memory_limit; /* bytes that Tessera may allocate in this process; 0: 80 % of what the process may use */
  uint64_t gpu_memory;   /* bytes; 0: most of what the device has free */
  const char* device;    /* "auto", "host", "gpu"; NULL: "auto" */
} tessera_options;
#define TESSERA_OPTIONS_INIT \
  { sizeof(tessera_options), 0, 0, 0, 0, NULL }

/* Opens the database in a directory, which is made if it is not there. NULL, "" or ":memory:" is a database that lives until
 * it is closed. options: NULL for none. */
TESSERA_API int tessera_open(const char* path, const tessera_options* options, tessera_database** database,
                             tessera_error* error);
TESSERA_API void tessera_close(tessera_database* database);

TESSERA_API int tessera_connect(tessera_database* database, tessera_connection** connection, tessera_error* error);
/* A transaction that is open is rolled back. */
TESSERA_API void tessera_disconnect(tessera_connection* connection);

/* Stops what runs on the connection, which then fails with SQLSTATE 57014. No effect if nothing runs. May be called by a
 * signal handler. */
TESSERA_API void tessera_cancel(tessera_connection* connection);

/* Whether SIGINT cancels what runs on the connection, if its thread is the process's first: then that signal's handler is
 * replaced while a statement runs, and is called, too. Off at first. */
TESSERA_API void tessera_set_interruptible(tessera_connection* connection, int interruptible);

/* Called from any thread while a statement runs, several times a second: what is being done, in a few words, how far it is,
 * and of how much (0: unknown). It must not call back into the connection, but for tessera_cancel. */
typedef void (*tessera_progress)(void* data, const char* what, uint64_t done, uint64_t total);
/* progress: NULL for none. REQUIRES: nothing runs on the connection. */
TESSERA_API void tessera_set_progress(tessera_connection* connection, tessera_progress progress, void* data);

/* Whether a transaction is open: BEGIN came, and neither COMMIT nor ROLLBACK. */
TESSERA_API int tessera_in_transaction(tessera_connection* connection);

/* What the user should know of the last statement though it succeeded, lines, or "": until the next call with the
 * connection. It is told once. */
TESSERA_API const char* tessera_warning(tessera_connection* connection);

/* ---- Statements */

/* The first statement of a text of `length` bytes (SIZE_MAX: up to its NUL). tail: gets where the next one begins, or the
 * text's end; NULL: not asked for. *statement is NULL if there is none but blanks and comments. Errors of the statement itself are
 * told by tessera_describe and tessera_execute. */
TESSERA_API int tessera_prepare(tessera_connection* connection, const char* sql, size_t length,
                                tessera_statement** statement, const char** tail, tessera_error* error);
TESSERA_API void tessera_finalize(tessera_statement* statement);

/* The columns of its result, none if it returns no rows, and the types of its parameters ("n", Arrow's null type, where the
 * type cannot be told from where the parameter stands): two struct types. Either may be NULL. The statement does not run. */
TESSERA_API int tessera_describe(tessera_statement* statement, struct ArrowSchema* columns,
                                 struct ArrowSchema* parameters, tessera_error* error);

/* Values of the parameters $1, $2 and so on, or ?, by number from 1. They stay until they are bound anew. A text takes the
 * type of the place where the parameter stands, as a literal in quotes does; the others have the type of their name. */
TESSERA_API int tessera_bind_null(tessera_statement* statement, int number, tessera_error* error);
TESSERA_API int tessera_bind_boolean(tessera_statement* statement, int number, int value, tessera_error* error);
TESSERA_API int tessera_bind_int64(tessera_statement* statement, int number, int64_t value, tessera_error* error);
TESSERA_API int tessera_bind_double(tessera_statement* statement, int number, double value, tessera_error* error);
TESSERA_API int tessera_bind_text(tessera_statement* statement, int number, const char* value, size_t length,
                                  tessera_error* error);
TESSERA_API int tessera_bind_bytea(tessera_statement* statement, int number, const void* value, size_t length,
                                   tessera_error* error);
/* "-12.50", with the digits that it has. */
TESSERA_API int tessera_bind_decimal(tessera_statement* statement, int number, const char* value, tessera_error* error);
/* Days since 1970-01-01. */
TESSERA_API int tessera_bind_date(tessera_statement* statement, int number, int32_t days, tessera_error* error);
/* Microseconds since midnight. */
TESSERA_API int tessera_bind_time(tessera_statement* statement, int number, int64_t micros, tessera_error* error);
/* Microseconds since 1970-01-01 00:00:00; of a timestamptz in UTC. */
TESSERA_API int tessera_bind_timestamp(tessera_statement* statement, int number, int64_t micros, tessera_error* error);
TESSERA_API int tessera_bind_timestamptz(tessera_statement* statement, int number, int64_t micros,
                                         tessera_error* error);
TESSERA_API int tessera_bind_interval(tessera_statement* statement, int number, int32_t months, int32_t days,
                                      int64_t micros, tessera_error* error);
/* Sixteen bytes. */
TESSERA_API int tessera_bind_uuid(tessera_statement* statement, int number, const uint8_t* value, tessera_error* error);
/* All parameters from the rows of a stream, which is released: tessera_execute then runs the statement once for each row, in
 * one transaction. */
TESSERA_API int tessera_bind_stream(tessera_statement* statement, struct ArrowArrayStream* rows, tessera_error* error);
TESSERA_API void tessera_clear_bindings(tessera_statement* statement);

/* Runs it to its end. rows: gets the result, which the caller releases: a stream without columns if it returns no rows; NULL:
 * not asked for. count: gets how many rows it changed, or -1 if it is no statement that changes rows; NULL: not asked for.
 * On an error nothing is changed. */
TESSERA_API int tessera_execute(tessera_statement* statement, struct ArrowArrayStream* rows, int64_t* count,
                                tessera_error* error);
/* The command tag of the last tessera_execute: "INSERT 0 3", "CREATE TABLE", "SELECT 10". Until the next call with the statement. */
TESSERA_API const char* tessera_command_tag(tessera_statement* statement);

/* All statements of a text up to its NUL, up to the first error; the result is that of the last one. */
TESSERA_API int tessera_query(tessera_connection* connection, const char* sql, struct ArrowArrayStream* rows,
                              int64_t* count, tessera_error* error);

/* Another stream of the rows of one that tessera_execute or tessera_query gave, from the first row on, and without a copy of
 * them. Both are released. */
TESSERA_API int tessera_copy_stream(struct ArrowArrayStream* rows, struct ArrowArrayStream* copy, tessera_error* error);

/* ---- Rows in */

/* A temporary table with the rows of a stream, which is released: it takes the place of one of that name, hides other tables
 * of that name from this connection, and goes with it. count: as above. */
TESSERA_API int tessera_register(tessera_connection* connection, const char* name, struct ArrowArrayStream* rows,
                                 int64_t* count, tessera_error* error);
/* The same without a copy: the rows stay in the arrays of the stream, which are kept and must not change. A column is converted
 * when a statement reads it, and the table can only be read. It is an error if there is a temporary table of that name. */
TESSERA_API int tessera_register_frame(tessera_connection* connection, const char* name, struct ArrowArrayStream* rows,
                                       int64_t* count, tessera_error* error);
/* Drops a table that one of the two has made. */
TESSERA_API int tessera_unregister(tessera_connection* connection, const char* name, tessera_error* error);
/* *found: whether a table or view can be used under that name. */
TESSERA_API int tessera_has_table(tessera_connection* connection, const char* name, int* found, tessera_error* error);

#ifdef __cplusplus
}
#endif

#endif
