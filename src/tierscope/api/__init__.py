"""What `import tierscope as ts` offers: the commands' use cases as typed calls. docs/api.md tells what each costs, and what may change."""
