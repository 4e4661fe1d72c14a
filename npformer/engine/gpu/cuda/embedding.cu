// The gradient of an embedding's table: each row of dy is added to the row of its id.
//
// In fixed order: `order` sorts the ids, and equal ids by position, so that each id forms a run. A block
// sums up RUN sorted positions. A run that lies within the block is finished. Parts of runs that cross
// its edges go to `edges`, (blocks, 2, width): first the part of a run that began before this block, then
// the part of a run that begins here and continues. A second launch adds up these parts in order.
//
// Ids that are not rows of the table are skipped. The host has checked the ids, but with a wrong one a
// kernel would write into other memory.

#define RUN 64

// Replaces functional.embedding_backward, within blocks.
extern "C" __global__ void embedding_backward_of_runs(
    const index_t* ids, const index_t* order, const real* dy, real* dtable, real* edges, index_t n,
    index_t width, index_t vocab_size) {
    __shared__ index_t row[RUN], id[RUN];
    const index_t first = index_t(blockIdx.x) * RUN;
    const int size = int(min(index_t(RUN), n - first));
    for (int k = threadIdx.x; k < size; k += blockDim.x) {
        row[k] = order[first + k];
        id[k] = ids[row[k]];
    }
    __syncthreads();
    const bool began_before = first > 0 && ids[order[first - 1]] == id[0];
    const bool goes_on = first + size < n && ids[order[first + size]] == id[size - 1];
    real* edge = edges + 2 * index_t(blockIdx.x) * width;
    for (index_t column = threadIdx.x; column < width; column += blockDim.x) {
        real sum = 0;
        bool in_first = true;
        for (int k = 0; k < size; k++) {
            sum += dy[row[k] * width + column];
            const bool last = k + 1 == size;
            if (!last && id[k + 1] == id[k]) continue;
            if (in_first && began_before) {
                edge[column] = sum;
            } else if (last && goes_on) {
                edge[width + column] = sum;
            } else if (id[k] >= 0 && id[k] < vocab_size) {
                dtable[id[k] * width + column] = sum;
            }
            sum = 0;
            in_first = false;
        }
    }
}

// Replaces functional.embedding_backward, across their edges.
extern "C" __global__ void embedding_backward_of_edges(
    const index_t* ids, const index_t* order, const real* edges, real* dtable, index_t n,
    index_t width, index_t vocab_size) {
    const index_t first = index_t(blockIdx.x) * RUN, next = first + RUN;
    if (next >= n) return;
    const index_t id = ids[order[next - 1]];
    const bool goes_on = ids[order[next]] == id;
    const bool began_before = first > 0 && ids[order[first - 1]] == id;  // then the run fills this block
    if (!goes_on || began_before || id < 0 || id >= vocab_size) return;
    for (index_t column = threadIdx.x; column < width; column += blockDim.x) {
        real sum = edges[(2 * index_t(blockIdx.x) + 1) * width + column];
        for (index_t block = next / RUN; block * RUN < n; block++) {
            if (ids[order[block * RUN]] != id) break;
            sum += edges[2 * block * width + column];
        }
        dtable[id * width + column] = sum;
    }
}
