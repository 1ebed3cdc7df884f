/* The first five lines of a query's result, from a database in memory: how the C interface is used. */
#include <inttypes.h>
#include <stdio.h>

#include "tessera.h"

static int Fail(tessera_error* error) {
  fprintf(stderr, "error %s: %s\n%s\n", error->sqlstate, error->message, error->hint);
  tessera_error_clear(error);
  return 1;
}

int main(void) {
  tessera_error error = TESSERA_ERROR_INIT;
  tessera_database* database = NULL;
  tessera_connection* connection = NULL;
  tessera_statement* statement = NULL;
  struct ArrowArrayStream rows;
  struct ArrowArray batch;
  const char* sql = "SELECT n, n * n AS square FROM generate_series(1, $1::bigint) AS s (n) WHERE n % 2 = 1 ORDER BY n LIMIT 5";

  if (tessera_open(":memory:", NULL, &database, &error) || tessera_connect(database, &connection, &error) ||
      tessera_prepare(connection, sql, SIZE_MAX, &statement, NULL, &error) ||
      tessera_bind_int64(statement, 1, 1000, &error) || tessera_execute(statement, &rows, NULL, &error))
    return Fail(&error);

  while (rows.get_next(&rows, &batch) == 0 && batch.release != NULL) {
    /* Both columns are BIGINT without NULLs: the second buffer has the values. */
    const int64_t* n = (const int64_t*)batch.children[0]->buffers[1];
    const int64_t* square = (const int64_t*)batch.children[1]->buffers[1];
    for (int64_t i = 0; i < batch.length; ++i) printf("%" PRId64 " %" PRId64 "\n", n[i], square[i]);
    batch.release(&batch);
  }
  rows.release(&rows);

  tessera_finalize(statement);
  tessera_disconnect(connection);
  tessera_close(database);
  return 0;
}
